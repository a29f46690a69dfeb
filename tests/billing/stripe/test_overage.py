"""Overage at Stripe: chosen, reported exactly once whatever dies, invoiced, ended."""

import time
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client

from billing.limits.overage import report_overage
from billing.limits.quota import open_quota_period
from billing.limits.spending import set_budget
from billing.models import Plan, QuotaPeriod
from billing.plans.entitlements import entitlement_for, overage_limit
from billing.stripe.gateway import stripe_api
from billing.usage.margin import margins
from core.clock import database_now
from core.models import AuditEntry
from core.security.scopes import Principal
from tests.factories import make_user
from tests.harness.admin_client import AdminClient
from tests.harness.clients import log_in_client
from tests.harness.fake_stripe.server import FakeStripe
from tests.harness.stripe_customer import Customer

pytestmark = [pytest.mark.databases, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page(buyer: Customer) -> Client:
    client = Client()
    client.force_login(buyer.user)
    return client


@pytest.fixture
def payer(buyer: Customer, shop: FakeStripe, page: Client) -> Customer:
    """Alice on Scale (50 US$ a month included), with overage to 80 US$."""
    shop.world.now = int(time.time())
    call_command("billing_setup", price=["scale=1.2/overage"], verbosity=0)
    buyer.buy("scale")
    shop.deliver()
    set_budget(by=Principal.of(buyer.user), usd_per_month=Decimal(80))
    page.post("/billing/overage", {"allow": "1"})
    shop.deliver()
    return buyer


def use(payer: Customer, cents: int) -> QuotaPeriod:
    """Calls beyond the plan; without migrations there is no trigger that sums them up."""
    entitlement = entitlement_for(payer.user.pk)
    assert entitlement is not None
    period = open_quota_period(payer.user.pk, entitlement.period)
    period.usd_used = 50 + Decimal(cents) / 100
    period.overage_from = Decimal(50)
    period.overage_sent, period.overage_due = period.overage_sent or 0, period.overage_due or 0
    period.save()
    return period


def report() -> int:
    cache.delete("billing-overage")
    return report_overage()


def metered(shop: FakeStripe) -> list[int]:
    """What Stripe counted, the oldest first, in cents."""
    events = reversed(shop.world.every("billing.meter_event"))
    return [int(row["payload"]["value"]) for row in events]


def limit_of(payer: Customer) -> int | None:
    entitlement = entitlement_for(payer.user.pk)
    return overage_limit(entitlement) if entitlement else None


def test_the_payer_chooses_it_and_its_use_is_on_the_invoice(
    payer: Customer, shop: FakeStripe, page: Client
) -> None:
    assert limit_of(payer) == 80
    assert AuditEntry.objects.get(action="allow_overage").actor == "alice@example.org"
    use(payer, 1000)
    report()
    use(payer, 1550)
    assert (report(), report(), metered(shop)) == (1, 0, [1000, 550])
    shop.advance(30)
    shop.deliver()
    (line,) = shop.world.every("invoice")[0]["lines"]["data"][1:]
    assert line == {"description": "ace_overage", "amount": 1860, "quantity": 1550}
    assert payer.plan == "scale"
    (paid,) = margins(now=database_now())
    assert paid.revenue == Decimal("99.00") * 2 + Decimal("18.60")
    told = page.get("/billing").content.decode()
    assert "1.20 US$ per US$ of model calls" in told


def die_before(send: Callable[..., None]) -> Callable[..., None]:
    def dying(*args: object, **named: object) -> None:
        raise SystemExit

    return dying


def die_after(send: Callable[..., None]) -> Callable[..., None]:
    def dying(*args: object, **named: object) -> None:
        send(*args, **named)
        raise SystemExit

    return dying


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
    assert [report(), report(), report()] == [1, 1, 0]
    assert metered(shop) == [300, 160]


def test_a_failure_of_stripe_is_tried_again(payer: Customer, shop: FakeStripe) -> None:
    use(payer, 300)
    shop.fail(500)
    assert (report(), report_overage(), metered(shop)) == (0, 0, [])  # and a pause
    assert (report(), metered(shop)) == (1, [300])


def test_an_answer_that_never_came_is_not_charged_twice(payer: Customer, shop: FakeStripe) -> None:
    """A day later Stripe may have forgotten the identifier."""
    period = use(payer, 300)
    long_ago = database_now() - timedelta(days=1)
    QuotaPeriod.objects.filter(pk=period.pk).update(overage_due=200, overage_at=long_ago)
    assert (report(), metered(shop)) == (1, [])
    assert (report(), metered(shop)) == (1, [100])


@pytest.mark.parametrize(("minutes", "in_period"), [(10, True), (90, False)])
def test_what_ends_after_the_period_is_on_the_invoice_that_can_change(
    payer: Customer, shop: FakeStripe, minutes: int, in_period: bool
) -> None:
    period = use(payer, 300)
    period.end = database_now() - timedelta(minutes=minutes)
    period.start = period.end - timedelta(days=30)
    period.save()
    report()
    (event,) = shop.world.every("billing.meter_event")
    assert (event["timestamp"] < period.end.timestamp()) is in_period


def test_ending_it_is_at_once_and_stripes_item_goes_when_nothing_is_left_to_charge(
    payer: Customer, shop: FakeStripe, page: Client
) -> None:
    period = use(payer, 300)
    page.post("/billing/overage")
    assert limit_of(payer) is None
    assert report() == 1
    items = shop.subscription()["items"]["data"]
    shop.world.tell("customer.subscription.updated", shop.subscription())
    shop.deliver()
    assert len(items) == 2  # what was used is still to be charged
    (scale,) = shop.world.every("price", lookup_key="ace_scale_monthly")
    assert payer.manage(price=scale["id"]).status_code == 409
    period.end = database_now() - timedelta(days=4)
    period.start = period.end - timedelta(days=30)
    period.save()
    shop.world.tell("customer.subscription.updated", shop.subscription())
    shop.deliver()
    assert len(items) == 1
    assert payer.manage(price=scale["id"]).status_code == 303
    page.post("/billing/overage", {"allow": "1"})  # and may be chosen again
    assert (len(items), limit_of(payer)) == (2, 80)


def test_a_killed_choice_allows_nothing_and_can_be_repeated(
    buyer: Customer, shop: FakeStripe, page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.world.now = int(time.time())
    call_command("billing_setup", price=["scale=1.2/overage"], verbosity=0)
    buyer.buy("scale")
    shop.deliver()
    set_budget(by=Principal.of(buyer.user), usd_per_month=Decimal(80))
    with monkeypatch.context() as patched:
        patched.setattr(stripe_api, "add_item", die_after(stripe_api.add_item))
        with pytest.raises(SystemExit):
            page.post("/billing/overage", {"allow": "1"})
    assert limit_of(buyer) is None
    page.post("/billing/overage", {"allow": "1"})
    assert (limit_of(buyer), len(shop.subscription()["items"]["data"])) == (80, 2)


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
    assert len(shop.subscription()["items"]["data"]) == 1
    assert limit_of(buyer) is None


def test_a_year_paid_at_once_cannot(buyer: Customer, shop: FakeStripe, page: Client) -> None:
    call_command("billing_setup", price=["scale=990/year", "scale=1.2/overage"], verbosity=0)
    shop.world.now = int(time.time())
    bought = buyer.post("/billing/subscribe", {"plan": "scale", "interval": "year"})
    buyer.pay(bought.json()["url"])
    shop.deliver()
    answer = page.post("/billing/overage", {"allow": "1"}, follow=True)
    assert "Overage needs a plan that is paid monthly" in answer.content.decode()


def test_a_new_subscription_begins_without_it(payer: Customer, shop: FakeStripe) -> None:
    shop.world.end(shop.subscription())
    shop.deliver()
    payer.buy("scale")
    shop.deliver()
    assert (payer.plan, limit_of(payer)) == ("scale", None)


def test_staff_sees_and_ends_it(payer: Customer, page: Client) -> None:
    staff = make_user("staff@example.org", is_staff=True, is_superuser=True)
    client = Client()
    log_in_client(client, staff)
    desk = AdminClient(client)
    assert "1.20 US$ per US$ of model calls" in desk.rows("billing_billingaccount")
    assert "1 overage ended" in desk.act("end_overages", payer.account)
    assert limit_of(payer) is None
    assert AuditEntry.objects.get(action="end_overage").actor == "staff@example.org"


def test_a_stranger_changes_and_sees_only_their_own(payer: Customer) -> None:
    client = Client()
    client.force_login(make_user("charlie@example.org"))
    client.post("/billing/overage")
    assert limit_of(payer) == 80
    assert "1.20 US$" not in client.get("/billing").content.decode()


def test_rest_tells_what_was_used_beyond_the_plan(payer: Customer) -> None:
    use(payer, 250)
    bearer = {"Authorization": f"Bearer {payer.token}"}
    told = Client().get("/api/v1/billing/subscription", headers=bearer).json()
    assert (told["overage_usd"], told["overage_limit"]) == ("2.500000", 80)


def test_setup_makes_one_meter_and_one_price(payer: Customer, shop: FakeStripe) -> None:
    for _ in range(2):
        call_command("billing_setup", price=["scale=1.2/overage"], verbosity=0)
    (meter,) = shop.world.every("billing.meter")
    (price,) = shop.world.every("price", lookup_key="ace_scale_monthly_overage")
    assert price["recurring"]["meter"] == meter["id"]
    plan = Plan.objects.get(slug="scale")
    assert (plan.price, plan.stripe_product_id) == ("99 US$ a month", "ace_scale")
    answer = payer.post("/billing/subscribe", {"plan": "scale", "interval": "overage"})
    assert answer.status_code == 400
