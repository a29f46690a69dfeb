"""A subscription from checkout to its end, over real HTTP."""

from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.management import call_command
from pytest_django.live_server_helper import LiveServer

from accounts.services.personal_data import delete_account
from billing.limits.quota import open_quota_period, reserve_evolution
from billing.models import BillingAccount, Plan, QuotaPeriod, TrialMark
from billing.plans.billing_periods import BillingPeriod
from billing.plans.entitlements import entitlement_for
from billing.stripe.subscriptions import subscribe
from core.clock import database_now
from core.errors import Invalid
from tests.factories import make_user
from tests.harness.fake_stripe.server import FakeStripe
from tests.harness.fake_stripe.world import DECLINED, FAILS_LATER
from tests.harness.stripe_customer import Customer

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


def span_of(buyer: Customer) -> BillingPeriod:
    """The period that is paid."""
    start, end = buyer.account.period_start, buyer.account.period_end
    assert start is not None
    assert end is not None
    return BillingPeriod(start, end)


def test_the_whole_lifecycle(buyer: Customer, shop: FakeStripe) -> None:
    page = buyer.subscribe("scale").json()["url"]
    assert (buyer.pay(page, DECLINED).status_code, buyer.plan) == (402, "free")
    assert buyer.pay(page).headers["location"].startswith(buyer.site)
    assert buyer.plan == "free"  # what the pay page leads back to grants nothing
    assert {one.status for one in shop.deliver()} == {200}
    assert (buyer.plan, buyer.account.status) == ("scale", "active")
    again = buyer.subscribe("scale")
    assert (again.status_code, again.json()["error"]["code"]) == (409, "already_subscribed")

    first = buyer.account.period_end
    shop.advance(30)
    shop.deliver()
    assert buyer.account.period_start == first
    assert (buyer.plan, buyer.account.status) == ("scale", "active")

    shop.world.cards[buyer.account.stripe_customer_id] = FAILS_LATER
    shop.advance(30)
    shop.deliver()
    until = buyer.account.grace_until
    assert (buyer.plan, buyer.account.status) == ("scale", "past_due")
    assert until == span_of(buyer).start + timedelta(days=7)
    late = entitlement_for(buyer.user.pk, now=until)
    assert late is not None
    assert late.plan.slug == "free"

    shop.advance(8)
    shop.deliver()
    assert (buyer.plan, buyer.account.status) == ("free", "canceled")
    assert buyer.subscribe("scale").status_code == 200


def test_a_plan_slug_with_a_null_byte_is_refused(buyer: Customer) -> None:
    with pytest.raises(Invalid, match="Choose one of: pro, scale"):
        subscribe(user=buyer.user, plan="pro\0", site=buyer.site)


def test_a_renewal_resets_the_quota(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    shop.advance(30)
    shop.deliver()
    used_up = open_quota_period(buyer.user.pk, span_of(buyer))
    QuotaPeriod.objects.filter(pk=used_up.pk).update(evolutions_used=10_000)
    shop.advance(30)
    shop.deliver()
    assert reserve_evolution(buyer.user.pk)
    period = QuotaPeriod.objects.exclude(pk=used_up.pk).get()
    assert (BillingPeriod(period.start, period.end), period.evolutions_held) == (span_of(buyer), 1)


def test_a_canceled_plan_ends_with_its_period(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    assert buyer.manage(do="cancel").status_code == 303
    shop.deliver()
    assert (buyer.plan, buyer.account.cancel_at_period_end) == ("scale", True)
    shop.advance(30)
    shop.deliver()
    assert (buyer.plan, buyer.account.status) == ("free", "canceled")
    assert not buyer.account.cancel_at_period_end


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


def price_of(shop: FakeStripe, plan: str) -> str:
    (price,) = shop.world.every("price", lookup_key=f"ace_{plan}_monthly")
    return str(price["id"])


def paid_by(shop: FakeStripe) -> list[int]:
    """What was charged, oldest first, in cents."""
    return [row["amount_paid"] for row in reversed(shop.world.every("invoice"))]


def test_a_larger_plan_is_charged_at_once_and_a_smaller_one_begins_later(
    buyer: Customer, shop: FakeStripe
) -> None:
    """Pro → Scale → Pro within a day: once 290 M tokens for nothing."""
    Plan.objects.update(trial_days=0)
    buyer.buy("pro")
    shop.advance(15)
    buyer.manage(price=price_of(shop, "scale"))
    shop.deliver()
    assert (buyer.plan, paid_by(shop)) == ("scale", [2900, 3500])
    buyer.manage(price=price_of(shop, "pro"))
    shop.deliver()
    assert (buyer.plan, paid_by(shop)) == ("scale", [2900, 3500])
    shop.advance(15)
    shop.deliver()
    assert (buyer.plan, paid_by(shop)[2:]) == ("pro", [2900])


def test_an_upgrade_that_is_not_paid_gets_no_grace(buyer: Customer, shop: FakeStripe) -> None:
    Plan.objects.update(trial_days=0)
    buyer.buy("pro")
    shop.world.cards[buyer.account.stripe_customer_id] = FAILS_LATER
    buyer.manage(price=price_of(shop, "scale"))
    shop.deliver()
    assert (buyer.account.status, buyer.plan) == ("past_due", "free")


def test_a_trial_whose_card_never_works_gets_no_grace(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("pro", FAILS_LATER)
    shop.deliver()
    assert buyer.plan == "pro"
    shop.advance(14)
    shop.deliver()
    assert (buyer.account.status, buyer.plan) == ("past_due", "free")
    assert [email.subject for email in mail.outbox] == ["Your last payment failed"]


@pytest.mark.parametrize("same", ["address", "card"])
def test_an_address_and_a_card_get_one_trial(
    buyer: Customer, shop: FakeStripe, live_server: LiveServer, same: str
) -> None:
    buyer.buy("pro")
    shop.deliver()
    assert buyer.account.status == "trialing"
    delete_account(user=buyer.user)
    address = {"address": "Alice+again@example.org", "card": "dora@example.org"}[same]
    again = Customer.of(make_user(address), live_server.url)
    again.buy("pro")
    offered = shop.world.every("checkout.session")[0]["subscription_data"]
    assert ("trial_period_days" in offered) == (same == "card")
    shop.deliver()
    shop.deliver()  # the trial that the card began was ended meanwhile
    assert (again.account.status, again.plan) == ("active", "pro")
    assert paid_by(shop)[-1] == 2900
    assert "example.org" not in str(list(TrialMark.objects.values()))


def test_a_trial_that_ends_soon_is_announced_once(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("pro")
    shop.world.tell("customer.subscription.trial_will_end", shop.subscription())
    shop.deliver()
    shop.deliver(again=True)
    (email,) = mail.outbox
    assert email.subject.startswith("Your trial of Pro ends on")
    assert email.to == ["alice@example.org"]


@pytest.mark.parametrize("made", ["price by hand", "add-on first", "price set anew"])
def test_a_payer_keeps_the_plan_however_the_price_was_made(
    buyer: Customer, shop: FakeStripe, made: str
) -> None:
    if made == "price set anew":  # the price was made by hand, under a product of the owner's
        for price in shop.world.every("price", lookup_key="ace_scale_monthly"):
            price["product"] = shop.world.add("prod", "product", name="Mine")["id"]
        call_command("billing_setup", verbosity=0)
    buyer.buy("scale")
    item = shop.subscription()["items"]["data"][0]
    if made == "price by hand":
        fields: dict[str, Any] = {
            "active": True,
            "unit_amount": 100,
            "lookup_key": None,
            "currency": "usd",
        }
        fields |= {"product": "ace_scale", "recurring": {"interval": "month"}}
        item["price"] = shop.world.add("price", "price", **fields)
    elif made == "add-on first":
        addon = {"id": "price_x", "product": "prod_x", "lookup_key": None, "unit_amount": 1}
        items = shop.subscription()["items"]
        items["data"].insert(0, {"id": "si_0", "price": addon, "current_period_start": 1})
    else:
        call_command("billing_setup", price=["scale=149"], verbosity=0)
    shop.deliver()
    assert (buyer.plan, buyer.account.status) == ("scale", "active")
    assert buyer.account.period_end


def test_a_year_is_paid_at_once_and_its_quota_is_monthly(buyer: Customer, shop: FakeStripe) -> None:
    call_command("billing_setup", price=["scale=990/year"], verbosity=0)
    page = buyer.post("/billing/subscribe", {"plan": "scale", "interval": "year"}).json()["url"]
    buyer.pay(page)
    shop.deliver()
    assert (buyer.plan, paid_by(shop)) == ("scale", [99000])
    found = entitlement_for(buyer.user.pk)
    assert found is not None
    assert found.period.end - found.period.start < timedelta(days=32)
    assert Plan.objects.get(slug="scale").price == "$99 a month or $990 a year"


def test_a_weekly_price_pays_for_no_more_than_the_month(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    item = shop.subscription()["items"]["data"][0]
    item["current_period_end"] = item["current_period_start"] + 7 * 86_400
    shop.deliver()
    found = entitlement_for(buyer.user.pk)
    assert found is not None
    assert found.period.end - found.period.start >= timedelta(days=28)


@pytest.mark.parametrize("status", ["paused", "incomplete"])
def test_no_second_checkout_beside_a_subscription_that_may_be_charged(
    buyer: Customer, shop: FakeStripe, status: str
) -> None:
    buyer.buy("scale")
    shop.subscription()["status"] = status
    shop.deliver()
    assert buyer.subscribe("scale").json()["error"]["code"] == "already_subscribed"


def test_a_plan_that_stripe_does_not_confirm_ends(buyer: Customer, shop: FakeStripe) -> None:
    """A customer that the key does not know was on the plan after 400 days."""
    buyer.buy("scale")
    shop.deliver()
    del shop.world.objects[buyer.account.stripe_customer_id]
    now = database_now()
    BillingAccount.objects.update(synced_at=now - timedelta(days=3), period_end=now)
    assert buyer.plan == "scale"
    long_ago = now - timedelta(days=15)
    start = long_ago - timedelta(days=30)
    BillingAccount.objects.update(synced_at=long_ago, period_start=start, period_end=long_ago)
    assert buyer.plan == "free"
    assert BillingAccount.objects.unconfirmed(now).count() == 1


def test_subscribers_of_an_older_price_keep_the_plan(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    call_command("billing_setup", price=["scale=149"], verbosity=0)
    paid = shop.subscription()["items"]["data"][0]["price"]
    (sold,) = shop.world.every("price", lookup_key="ace_scale_monthly")
    assert (paid["unit_amount"], sold["unit_amount"]) == (9_900, 14_900)
    shop.deliver()
    assert buyer.plan == "scale"
