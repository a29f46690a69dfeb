"""A subscription from checkout to its end, over real HTTP."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.core.management import call_command

from billing.limits.quota import open_quota_period, reserve_quota
from billing.models import BillingAccount, Plan, PlanActivation, QuotaPeriod, QuotaResource
from billing.plans.billing_periods import BillingPeriod
from billing.plans.entitlements import entitlement_for
from billing.stripe.subscriptions import subscribe
from core.clock import database_now
from core.errors import Invalid
from evolution.models import Outcome
from evolution.outcomes.retention import blank_old_traces
from tests.factories import make_outcome, make_playbook
from tests.harness.fake_stripe.server import FakeStripe
from tests.harness.fake_stripe.world import DECLINED, FAILS_LATER
from tests.harness.stripe_customer import Customer

pytestmark = [pytest.mark.databases, pytest.mark.django_db(transaction=True)]


def span_of(buyer: Customer) -> BillingPeriod:
    """The period that is paid."""
    start, end = buyer.account.period_start, buyer.account.period_end
    assert start is not None
    assert end is not None
    return BillingPeriod(start, end)


def test_the_whole_lifecycle(buyer: Customer, shop: FakeStripe) -> None:
    page = buyer.subscribe("team").json()["url"]
    assert (buyer.pay(page, DECLINED).status_code, buyer.plan) == (402, "free")
    assert buyer.pay(page).headers["location"].startswith(buyer.site)
    assert buyer.plan == "free"  # what the pay page leads back to grants nothing
    assert {one.status for one in shop.deliver()} == {200}
    assert (buyer.plan, buyer.account.status) == ("team", "active")
    again = buyer.subscribe("team")
    assert (again.status_code, again.json()["error"]["code"]) == (409, "already_subscribed")

    first = buyer.account.period_end
    shop.advance(30)
    shop.deliver()
    assert buyer.account.period_start == first
    assert (buyer.plan, buyer.account.status) == ("team", "active")

    shop.world.cards[buyer.account.stripe_customer_id] = FAILS_LATER
    shop.advance(30)
    shop.deliver()
    until = buyer.account.grace_until
    assert (buyer.plan, buyer.account.status) == ("team", "past_due")
    assert until == span_of(buyer).start + timedelta(days=7)
    late = entitlement_for(buyer.user.pk, now=until)
    assert late is not None
    assert late.plan.slug == "free"

    shop.advance(8)
    shop.deliver()
    assert (buyer.plan, buyer.account.status) == ("free", "canceled")
    assert buyer.subscribe("team").status_code == 200


def test_a_plan_slug_with_a_null_byte_is_refused(buyer: Customer) -> None:
    with pytest.raises(Invalid, match="Choose one of: pro, team"):
        subscribe(user=buyer.user, plan="pro\0", site=buyer.site)


def test_a_renewal_resets_the_quota(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("team")
    shop.advance(30)
    shop.deliver()
    used_up = open_quota_period(buyer.user.pk, span_of(buyer))
    QuotaPeriod.objects.filter(pk=used_up.pk).update(evolutions_used=10_000)
    shop.advance(30)
    shop.deliver()
    job, hour = uuid4(), timedelta(hours=1)
    kind = QuotaResource.EVOLUTIONS
    assert reserve_quota(
        user_id=buyer.user.pk, resource=kind, amount=1, holder_id=job, lifetime=hour
    )
    period = QuotaPeriod.objects.exclude(pk=used_up.pk).get()
    assert (BillingPeriod(period.start, period.end), period.evolutions_held) == (span_of(buyer), 1)


def test_a_canceled_plan_ends_with_its_period(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("team")
    assert buyer.manage(do="cancel").status_code == 303
    shop.deliver()
    assert (buyer.plan, buyer.account.cancel_at_period_end) == ("team", True)
    shop.advance(30)
    shop.deliver()
    assert (buyer.plan, buyer.account.status) == ("free", "canceled")
    assert not buyer.account.cancel_at_period_end


def test_traces_outlive_a_canceled_plan_for_a_grace_period(
    buyer: Customer, shop: FakeStripe
) -> None:
    long_ago = database_now() - timedelta(days=90)
    PlanActivation.objects.create(activated_at=long_ago, last_seen_at=database_now())
    make_outcome(make_playbook(buyer.user), buyer.user, reasoning_trace="what I did")
    buyer.buy("team")
    shop.deliver()
    Outcome.objects.update(processed_at=database_now() - timedelta(days=100))
    buyer.manage(do="cancel")
    shop.advance(30)
    shop.deliver()
    assert (buyer.plan, blank_old_traces()) == ("free", 0)
    BillingAccount.objects.update(previous_plan_ended_at=database_now() - timedelta(days=31))
    assert blank_old_traces() == 1


def test_only_users_who_never_paid_get_a_trial(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("pro")
    shop.deliver()
    assert (buyer.plan, buyer.account.status) == ("pro", "trialing")
    assert buyer.account.trial_end == buyer.account.period_end
    buyer.manage(do="cancel")
    shop.advance(14)
    shop.deliver()
    assert buyer.plan == "free"
    buyer.buy("pro")
    shop.deliver()
    assert (buyer.plan, buyer.account.status) == ("pro", "active")


def test_a_failed_trial_payment_is_past_due_until_a_new_card(
    buyer: Customer, shop: FakeStripe
) -> None:
    buyer.buy("pro", FAILS_LATER)
    shop.advance(15)
    shop.deliver()
    assert buyer.account.status == "past_due"
    buyer.manage(do="card")
    shop.deliver()
    assert (buyer.plan, buyer.account.status) == ("pro", "active")
    assert buyer.account.grace_until is None


def test_plans_are_changed_in_the_portal(buyer: Customer, shop: FakeStripe) -> None:
    prices = {row["lookup_key"]: row["id"] for row in shop.world.every("price")}
    buyer.buy("team")
    for plan in ("pro", "team", "pro"):
        key = Plan.objects.get(slug=plan).price_lookup_key
        buyer.manage(price=prices[key])
        shop.deliver()
        assert buyer.plan == plan


def test_subscribers_of_an_older_price_keep_the_plan(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("team")
    call_command("billing_setup", price=["team=149"], verbosity=0)
    paid = shop.subscription()["items"]["data"][0]["price"]
    (sold,) = shop.world.every("price", lookup_key="ace_team_monthly")
    assert (paid["unit_amount"], sold["unit_amount"]) == (9_900, 14_900)
    shop.deliver()
    assert buyer.plan == "team"
