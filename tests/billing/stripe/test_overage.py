"""Overage at Stripe: chosen, charged exactly once whatever dies, ended with a last invoice."""

import time
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core import mail
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client

from accounts.services.personal_data import delete_account
from billing.limits.overage import report_overage
from billing.limits.quota import open_quota_period
from billing.limits.spending import set_budget
from billing.models import OverageCharge, Plan, QuotaPeriod
from billing.plans.entitlements import entitlement_for, overage_limit
from billing.stripe import sync
from billing.stripe.gateway import stripe_api
from billing.usage.margin import margins
from core.clock import database_now
from core.models import AuditEntry
from core.security.scopes import Principal
from tests.billing.stripe.conftest import restore_or_build
from tests.factories import make_user
from tests.harness.admin_client import AdminClient
from tests.harness.clients import log_in_client
from tests.harness.concurrency import run_concurrently
from tests.harness.fake_stripe.server import FakeStripe
from tests.harness.fake_stripe.world import DAY, FAILS_LATER, is_metered
from tests.harness.row_replay import RecordedRows
from tests.harness.stripe_customer import Customer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page(buyer: Customer) -> Client:
    client = Client()
    client.force_login(buyer.user)
    return client


@pytest.fixture
def saver(buyer: Customer, shop: FakeStripe) -> Customer:
    """Alice on Scale (50 US$ a month included), with a budget of 80 US$."""

    def buy() -> None:
        call_command("billing_setup", price=["scale=1.2/overage", "scale=990/year"], verbosity=0)
        buyer.buy("scale")
        shop.deliver()
        set_budget(by=Principal.of(buyer.user), usd_per_month=Decimal(80))

    shop.world.now = int(time.time())
    # Sealed with its time, as Stripe's objects are.
    restore_or_build(f"{buyer.site} saver", shop, buy, RecordedRows(as_of_now=False))
    return buyer


@pytest.fixture
def payer(saver: Customer, shop: FakeStripe, page: Client) -> Customer:
    """Alice with overage to 80 US$."""
    page.post("/billing/overage", {"allow": "1"})
    shop.deliver()
    return saver


def use(payer: Customer, cents: int) -> QuotaPeriod:
    """Calls beyond the plan; without migrations there is no trigger that sums them up."""
    entitlement = entitlement_for(payer.user.pk)
    assert entitlement is not None
    period = open_quota_period(payer.user.pk, entitlement.period)
    period.refresh_from_db()
    period.usd_used = 50 + Decimal(cents) / 100
    period.overage_from, period.overage_sent = Decimal(50), period.overage_sent or 0
    period.save()
    return period


def report() -> int:
    cache.delete("billing-overage")
    return report_overage()


def resync() -> None:
    cache.delete("billing-resync")
    sync.resync_stale_account()


def metered(shop: FakeStripe) -> list[int]:
    """What Stripe counted, the oldest first, in cents."""
    events = reversed(shop.world.every("billing.meter_event"))
    return [int(row["payload"]["value"]) for row in events]


def overages(shop: FakeStripe) -> list[dict[str, Any]]:
    return [row for row in shop.world.every("subscription") if is_metered(row)]


def billed(shop: FakeStripe) -> list[tuple[str, int]]:
    """Status and total of the invoices of overage, the oldest first, without those of nothing."""
    own = {row["id"] for row in overages(shop)}
    rows = [
        row
        for row in reversed(shop.world.every("invoice"))
        if row["parent"]["subscription_details"]["subscription"] in own and row["total"]
    ]
    return [(row["status"], row["total"]) for row in rows]


def limit_of(payer: Customer) -> int | None:
    entitlement = entitlement_for(payer.user.pk)
    return overage_limit(entitlement) if entitlement else None


@pytest.mark.databases
def test_the_payer_chooses_it_and_its_use_is_on_an_invoice(
    payer: Customer, shop: FakeStripe, page: Client
) -> None:
    assert (payer.plan, limit_of(payer)) == ("scale", 80)
    assert not payer.account.duplicate_subscription_id
    assert AuditEntry.objects.get(action="allow_overage").actor == "alice@example.org"
    use(payer, 1000)
    report()
    use(payer, 1550)
    assert (report(), report(), metered(shop)) == (1, 0, [1000, 550])
    shop.advance(30)
    shop.deliver()
    assert billed(shop) == [("paid", 1860)]
    assert payer.plan == "scale"
    (paid,) = margins(now=database_now())
    assert paid.revenue == Decimal("99.00") * 2 + Decimal("18.60")
    told = page.get("/billing").content.decode()
    assert "$1.20 per $1 of model calls" in told


def test_the_usage_page_says_how_much_is_beyond_the_plan(payer: Customer, page: Client) -> None:
    use(payer, 2500)
    told = page.get("/usage").content.decode()
    assert "$75 of the $80 of model calls that your budget allows, $25.00 beyond" in told


def die_before(send: Callable[..., None]) -> Callable[..., None]:
    def dying(*args: object, **named: object) -> None:
        raise SystemExit

    return dying


def die_after(send: Callable[..., None]) -> Callable[..., None]:
    def dying(*args: object, **named: object) -> None:
        send(*args, **named)
        raise SystemExit

    return dying


@pytest.mark.databases
@pytest.mark.parametrize("dying", [die_before, die_after])
def test_a_process_that_dies_reports_nothing_twice_and_loses_nothing(
    payer: Customer,
    shop: FakeStripe,
    monkeypatch: pytest.MonkeyPatch,
    dying: Callable[[Callable[..., None]], Callable[..., None]],
) -> None:
    use(payer, 300)
    with monkeypatch.context() as patched:
        patched.setattr(stripe_api, "report_usage", dying(stripe_api.report_usage))
        with pytest.raises(SystemExit):
            report()
    use(payer, 460)  # meanwhile
    assert [report(), report()] == [2, 0]
    assert sorted(metered(shop)) == [160, 300]


def test_a_failure_of_stripe_is_tried_again(payer: Customer, shop: FakeStripe) -> None:
    use(payer, 300)
    shop.fail(500)
    assert (report(), report_overage(), metered(shop)) == (0, 0, [])  # and a pause
    assert (report(), metered(shop)) == (1, [300])


def test_an_answer_that_never_came_is_not_charged_twice(payer: Customer, shop: FakeStripe) -> None:
    """A day later Stripe may have forgotten the identifier."""
    use(payer, 200)
    shop.fail(500)
    report()
    OverageCharge.objects.update(tried_at=database_now() - timedelta(days=1))
    use(payer, 300)
    assert (report(), metered(shop)) == (2, [100])


@pytest.mark.parametrize(("minutes", "in_month"), [(10, True), (90, False)])
def test_a_late_report_is_of_the_month_whose_invoice_can_change(
    payer: Customer, shop: FakeStripe, minutes: int, in_month: bool
) -> None:
    use(payer, 300)
    shop.fail(500)
    report()
    used_at = database_now() - timedelta(minutes=minutes)
    OverageCharge.objects.update(created_at=used_at)
    report()
    (event,) = shop.world.every("billing.meter_event")
    assert (event["timestamp"] == int(used_at.timestamp())) is in_month


def test_ending_it_is_at_once_and_what_was_used_is_on_the_last_invoice(
    payer: Customer, shop: FakeStripe, page: Client
) -> None:
    use(payer, 300)
    page.post("/billing/overage")
    assert limit_of(payer) is None
    assert report() == 1
    page.post("/billing/overage", {"allow": "1"})  # and may be chosen again
    assert (len(overages(shop)), limit_of(payer)) == (1, 80)
    page.post("/billing/overage")
    shop.advance(30)
    shop.deliver()
    assert (billed(shop), overages(shop)[0]["status"]) == ([("paid", 360)], "canceled")
    assert (payer.plan, payer.account.overage_price) == ("scale", "")


def test_stripes_page_changes_and_ends_the_plan_and_ends_overage(
    payer: Customer, shop: FakeStripe
) -> None:
    (pro,) = shop.world.every("price", lookup_key="ace_pro_monthly")
    (year,) = shop.world.every("price", lookup_key="ace_scale_monthly_year")
    assert payer.manage(of="overage", price=pro["id"]).status_code == 409
    assert payer.manage(price=pro["id"]).status_code == 303  # smaller: with the next period
    shop.deliver()
    assert (payer.plan, limit_of(payer)) == ("scale", 80)
    use(payer, 300)
    report()
    assert payer.manage(price=year["id"]).status_code == 303
    shop.deliver()
    assert (payer.plan, limit_of(payer)) == ("scale", 80)
    assert payer.manage(of="overage", do="cancel").status_code == 303
    shop.deliver()
    assert (payer.plan, limit_of(payer)) == ("scale", None)
    shop.advance(31)
    shop.deliver()
    assert billed(shop) == [("paid", 360)]


def test_a_smaller_plan_includes_less_and_charges_the_price_that_was_agreed(
    payer: Customer, shop: FakeStripe
) -> None:
    shop.world.now -= 30 * DAY  # both began a month ago
    for row in shop.world.every("subscription"):
        item = row["items"]["data"][0]
        item["current_period_start"] -= 30 * DAY
        item["current_period_end"] -= 30 * DAY
    (pro,) = shop.world.every("price", lookup_key="ace_pro_monthly")
    payer.manage(price=pro["id"])
    shop.advance(30.001)
    shop.deliver()
    assert (payer.plan, limit_of(payer)) == ("pro", 80)
    assert payer.account.overage_price == "$1.20 per $1 of model calls"
    entitlement = entitlement_for(payer.user.pk)
    assert entitlement is not None
    assert entitlement.plan.included["monthly_usd"] == 15


@pytest.mark.parametrize("how", ["in the portal", "at once"])
def test_a_plan_that_ends_ends_overage_with_a_last_invoice(
    payer: Customer, shop: FakeStripe, how: str
) -> None:
    use(payer, 300)
    report()
    if how == "at once":
        (plan,) = (row for row in shop.world.every("subscription") if not is_metered(row))
        shop.world.end(plan)
        shop.deliver()
        assert overages(shop)[0]["cancel_at_period_end"]
    else:
        payer.manage(do="cancel")
        shop.deliver()
        assert limit_of(payer) == 80  # until then
    shop.advance(30)
    shop.deliver()
    assert (payer.plan, limit_of(payer)) == ("free", None)
    shop.advance(30)
    assert (billed(shop), overages(shop)[0]["status"]) == ([("paid", 360)], "canceled")
    shop.deliver()
    payer.buy("scale")
    shop.deliver()
    assert (payer.plan, limit_of(payer)) == ("scale", None)  # a new one begins without it


def wait_for_meter(shop: FakeStripe) -> None:
    OverageCharge.objects.update(sent_at=database_now() - timedelta(minutes=11))
    shop.world.now += 660


@pytest.mark.databases
def test_a_deleted_account_is_charged_for_what_it_used_and_forgotten(
    payer: Customer, shop: FakeStripe
) -> None:
    use(payer, 300)
    report()
    use(payer, 460)
    customer = payer.account.stripe_customer_id
    delete_account(user=payer.user)
    resync()
    assert not shop.world.get(customer, "customer").get("deleted")
    assert (report(), metered(shop)) == (1, [300, 160])
    resync()  # Stripe may not have counted it yet
    assert not shop.world.get(customer, "customer").get("deleted")
    wait_for_meter(shop)
    resync()
    assert billed(shop) == [("paid", 552)]
    assert shop.world.get(customer, "customer")["deleted"]
    assert {row["status"] for row in shop.world.every("subscription")} == {"canceled"}


@pytest.mark.databases
@pytest.mark.parametrize("after", ["cancel", "finalize", "pay"])
def test_a_process_that_dies_while_it_settles_charges_once(
    payer: Customer, shop: FakeStripe, after: str
) -> None:
    use(payer, 300)
    delete_account(user=payer.user)
    report()
    wait_for_meter(shop)
    calls = {"cancel": 2, "finalize": 4, "pay": 5}[after]
    # Its answers: the subscription, its end, its invoices, the final one, its payment.
    answer, seen = shop.api.answer, 0

    def refuse(*sent: Any) -> Any:
        nonlocal seen
        seen += 1
        found = answer(*sent)
        return found if seen < calls else (500, {"error": {"type": "api_error"}})

    shop.api.answer = refuse  # type: ignore[method-assign,assignment]  # a fault after the deed
    resync()
    shop.api.answer = answer  # type: ignore[method-assign]  # as it was
    assert seen == calls
    cache.clear()
    resync()
    assert billed(shop) == [("paid", 360)]
    assert {bool(row.get("deleted")) for row in shop.world.every("customer")} == {True}


def test_a_card_that_is_declined_keeps_no_deleted_customer(
    payer: Customer, shop: FakeStripe
) -> None:
    use(payer, 300)
    shop.world.cards[payer.account.stripe_customer_id] = FAILS_LATER
    delete_account(user=payer.user)
    report()
    wait_for_meter(shop)
    resync()
    assert billed(shop) == [("open", 360)]
    assert {bool(row.get("deleted")) for row in shop.world.every("customer")} == {True}


def test_an_unpaid_invoice_of_it_stops_it_until_the_card_works(
    payer: Customer, shop: FakeStripe, page: Client
) -> None:
    use(payer, 300)
    report()
    customer = payer.account.stripe_customer_id
    overage = overages(shop)[0]
    overage["items"]["data"][0]["current_period_end"] = shop.world.now + DAY  # before the plan's
    shop.world.cards[customer] = FAILS_LATER
    shop.advance(1)
    shop.deliver()
    assert (payer.plan, payer.account.status, limit_of(payer)) == ("scale", "active", None)
    assert [email.subject for email in mail.outbox] == ["Your last payment failed"]
    answer = page.post("/billing/overage", {"allow": "1"}, follow=True)
    assert "last overage invoice is unpaid" in answer.content.decode()
    payer.manage(do="card")
    shop.deliver()
    assert (billed(shop), limit_of(payer)) == ([("paid", 360)], 80)
    plan = next(row for row in shop.world.every("subscription") if not is_metered(row))
    assert overage["default_payment_method"] == plan["default_payment_method"]


@pytest.mark.databases
def test_events_in_any_order_and_twice_give_the_same(payer: Customer, shop: FakeStripe) -> None:
    for on in (False, True, False):
        payer.put("/billing/overage", {"on": on})
    for seed in range(3):
        shop.deliver(copies=2, seed=seed, again=True)
        assert (payer.plan, limit_of(payer)) == ("scale", None)
    assert overages(shop)[0]["cancel_at_period_end"]


@pytest.mark.databases
def test_a_killed_choice_can_be_repeated(
    saver: Customer, shop: FakeStripe, page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(stripe_api, "begin_overage", die_after(stripe_api.begin_overage))
        with pytest.raises(SystemExit):
            page.post("/billing/overage", {"allow": "1"})
    page.post("/billing/overage", {"allow": "1"})
    assert (limit_of(saver), len(overages(shop))) == (80, 1)


@pytest.mark.databases
def test_two_choices_at_once_begin_it_once(saver: Customer, shop: FakeStripe) -> None:
    answers = run_concurrently(3, lambda _: saver.put("/billing/overage", {"on": True}).status_code)
    assert (set(answers), len(overages(shop)), limit_of(saver)) == ({200}, 1, 80)


@pytest.mark.parametrize(
    ("plan", "why"), [("pro", "without a trial"), ("scale", "needs a monthly budget")]
)
def test_a_trial_and_an_account_without_a_budget_cannot(
    buyer: Customer, shop: FakeStripe, page: Client, plan: str, why: str
) -> None:
    call_command("billing_setup", price=[f"{plan}=1.2/overage"], verbosity=0)
    shop.world.now = int(time.time())
    buyer.buy(plan)
    shop.deliver()
    answer = page.post("/billing/overage", {"allow": "1"}, follow=True)
    assert why in answer.content.decode()
    assert overages(shop) == []
    assert limit_of(buyer) is None


def test_who_pays_a_year_pays_overage_each_month(buyer: Customer, shop: FakeStripe) -> None:
    call_command("billing_setup", price=["scale=990/year", "scale=1.2/overage"], verbosity=0)
    shop.world.now = int(time.time())
    bought = buyer.post("/billing/subscribe", {"plan": "scale", "interval": "year"})
    buyer.pay(bought.json()["url"])
    shop.deliver()
    set_budget(by=Principal.of(buyer.user), usd_per_month=Decimal(80))
    assert buyer.put("/billing/overage", {"on": True}).status_code == 200
    use(buyer, 300)
    report()
    shop.advance(30)
    shop.deliver()
    assert (billed(shop), limit_of(buyer)) == ([("paid", 360)], 80)
    assert len(shop.world.every("invoice", total=99_000)) == 1


def test_without_stripe_nothing_changes_and_a_smaller_budget_stops_calls(
    payer: Customer, shop: FakeStripe
) -> None:
    shop.fail(500)
    answer = payer.put("/billing/overage", {"on": False})
    assert (answer.status_code, limit_of(payer)) == (503, 80)
    set_budget(by=Principal.of(payer.user), usd_per_month=Decimal(50))
    assert limit_of(payer) is None


def test_staff_sees_and_ends_it(payer: Customer, page: Client) -> None:
    staff = make_user("staff@example.org", is_staff=True, is_superuser=True)
    client = Client()
    log_in_client(client, staff)
    desk = AdminClient(client)
    assert "$1.20 per $1 of model calls" in desk.rows("billing_billingaccount")
    assert "1 overage ended" in desk.act("end_overages", payer.account)
    assert limit_of(payer) is None
    assert "$1.20 per $1" not in desk.rows("billing_billingaccount")
    assert AuditEntry.objects.get(action="end_overage").actor == "staff@example.org"


def test_a_stranger_changes_and_sees_only_their_own(payer: Customer) -> None:
    client = Client()
    client.force_login(make_user("charlie@example.org"))
    client.post("/billing/overage")
    assert limit_of(payer) == 80
    assert "$1.20" not in client.get("/billing").content.decode()


def test_rest_allows_ends_and_tells_it(saver: Customer, shop: FakeStripe) -> None:
    allowed = saver.put("/billing/overage", {"on": True}).json()
    assert (allowed["overage_price"], allowed["overage_limit"]) == (
        "$1.20 per $1 of model calls",
        80,
    )
    use(saver, 250)
    ended = saver.put("/billing/overage", {"on": False}).json()
    assert (ended["overage_usd"], ended["overage_limit"]) == ("2.500000", None)
    for email, is_staff in (("charlie@example.org", False), ("staff@example.org", True)):
        other = Customer.of(make_user(email, is_staff=is_staff), saver.site)
        refused = other.put("/billing/overage", {"on": True})
        assert (refused.status_code, refused.json()["error"]["code"]) == (
            409,
            "overage_unavailable",
        )
        assert other.put("/billing/overage", {"on": False}).status_code == 200
    assert len(overages(shop)) == 1


def test_setup_makes_one_meter_and_one_price(payer: Customer, shop: FakeStripe) -> None:
    for _ in range(2):
        call_command("billing_setup", price=["scale=1.2/overage"], verbosity=0)
    (meter,) = shop.world.every("billing.meter")
    (price,) = shop.world.every("price", lookup_key="ace_scale_monthly_overage")
    assert price["recurring"]["meter"] == meter["id"]
    plan = Plan.objects.get(slug="scale")
    assert (plan.price, plan.stripe_product_id) == ("$99 a month or $990 a year", "ace_scale")
    answer = payer.post("/billing/subscribe", {"plan": "scale", "interval": "overage"})
    assert answer.status_code == 400
