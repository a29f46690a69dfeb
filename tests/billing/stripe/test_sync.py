"""Syncs apply what webhooks missed, and delete customers of deleted accounts."""

from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.core.cache import cache
from djstripe.models import APIKey
from djstripe.models import Customer as MirroredCustomer
from pytest_django.live_server_helper import LiveServer

from accounts.services.personal_data import delete_account
from billing.errors import NoStripeCustomer
from billing.models import BillingAccount, Plan, StripeEvent
from billing.plans.entitlements import grant_plan, withdraw_plan
from billing.stripe import sync
from billing.stripe.subscriptions import list_invoices, refresh_subscription
from billing.stripe.sync import sync_account
from core.errors import Conflict
from core.models import AuditEntry
from core.security.scopes import Principal
from evolution.worker.sweep import sync_billing
from tests.factories import make_user
from tests.harness.fake_stripe.server import FakeStripe
from tests.harness.stripe_customer import Customer

pytestmark = pytest.mark.django_db(transaction=True)


def resync() -> None:
    """Sync every customer, as the worker does within a day."""
    BillingAccount.objects.update(requested_at=None)
    for _ in range(BillingAccount.objects.count() + MirroredCustomer.objects.count()):
        cache.delete("billing-resync")  # one account every ten seconds
        sync.resync_stale_account()


def test_missed_events_are_applied(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    changes = AuditEntry.objects.filter(action="change_subscription")
    for _ in range(2):
        resync()
        assert (buyer.plan, changes.count()) == ("scale", 1)


def test_the_worker_syncs_each_account_once_a_day(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    sync_billing()
    assert buyer.plan != "scale"  # it was asked a moment ago
    BillingAccount.objects.update(requested_at="2026-01-01T00:00:00Z")
    cache.delete("billing-resync")  # one account every ten seconds
    sync_billing()
    assert buyer.plan == "scale"


def test_the_worker_pauses_while_stripe_is_down(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    BillingAccount.objects.update(requested_at="2026-01-01T00:00:00Z")
    shop.fail(500)
    sync.resync_stale_account()
    BillingAccount.objects.update(requested_at="2026-01-01T00:00:00Z")
    shop.api.calls.clear()
    sync.resync_stale_account()
    assert not shop.api.calls


def test_deleting_an_account_cancels_its_subscription(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    shop.deliver()
    delete_account(user=buyer.user)
    resync()
    assert shop.subscription()["status"] == "canceled"
    assert shop.world.every("customer") == [shop.world.every("customer")[0]]
    assert shop.world.every("customer")[0]["deleted"]
    assert not MirroredCustomer.objects.exists()


def test_a_wrong_key_ends_no_plan(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    shop.deliver()
    del shop.world.objects[buyer.account.stripe_customer_id]  # as another account's key sees it
    resync()
    assert (buyer.plan, bool(buyer.account.stripe_customer_id)) == ("scale", True)


def test_an_unreadable_customer_does_not_block_the_others(
    buyer: Customer, shop: FakeStripe, live_server: LiveServer
) -> None:
    buyer.subscribe("scale")
    del shop.world.objects[buyer.account.stripe_customer_id]
    other = Customer.of(make_user("dora@example.org"), live_server.url)
    other.buy("scale")
    resync()
    assert other.plan == "scale"


def test_an_orphaned_customer_unknown_to_the_key_does_not_block_the_others(
    buyer: Customer, shop: FakeStripe, live_server: LiveServer
) -> None:
    buyer.subscribe("scale")
    unknown = buyer.account.stripe_customer_id
    customer = shop.world.objects.pop(unknown)
    other = Customer.of(make_user("dora@example.org"), live_server.url)
    other.buy("scale")
    for user in (buyer.user, other.user):
        delete_account(user=user)
    resync()
    assert shop.subscription()["status"] == "canceled"
    assert MirroredCustomer.objects.count() == 1
    shop.world.objects[unknown] = customer  # the right key again
    resync()
    assert MirroredCustomer.objects.count() == 1
    MirroredCustomer.objects.update(date_purged="2026-01-01T00:00:00Z")
    resync()
    assert not MirroredCustomer.objects.exists()


def test_a_complimentary_plan_applies_before_and_after_a_subscription(
    buyer: Customer, shop: FakeStripe
) -> None:
    buyer.subscribe("pro")
    staff = Principal.of(make_user("staff@example.org", is_staff=True))
    grant_plan(user=buyer.user, plan=Plan.objects.get(slug="scale"), by=staff)
    resync()
    assert buyer.plan == "scale"
    buyer.buy("pro")
    resync()
    assert buyer.plan == "pro"
    shop.world.end(shop.subscription())
    resync()
    assert buyer.plan == "scale"


def test_a_complimentary_plan_can_be_withdrawn_after_an_abandoned_checkout(
    buyer: Customer, shop: FakeStripe
) -> None:
    staff = Principal.of(make_user("staff@example.org", is_staff=True))
    grant_plan(user=buyer.user, plan=Plan.objects.get(slug="scale"), by=staff)
    buyer.subscribe("pro")
    assert buyer.plan == "scale"
    withdraw_plan(account=buyer.account, by=staff)
    assert (buyer.plan, sync_account(account=buyer.account).status) == ("free", "free")


def test_staff_sync_an_account_with_an_audit_entry(buyer: Customer, shop: FakeStripe) -> None:
    staff = Principal.of(make_user("staff@example.org", is_staff=True))
    buyer.buy("scale")
    sync.resync_account(account=buyer.account, by=staff)
    assert buyer.plan == "scale"
    nobody = BillingAccount.objects.create(user=staff.user)
    with pytest.raises(NoStripeCustomer):
        sync.resync_account(account=nobody, by=staff)


def test_the_return_from_a_payment_shows_the_plan_before_any_event(
    buyer: Customer, shop: FakeStripe
) -> None:
    assert refresh_subscription(user=buyer.user) is None
    buyer.buy("scale")
    assert refresh_subscription(user=buyer.user) == buyer.account
    assert buyer.plan == "scale"


def test_invoices_are_listed_from_the_mirror(buyer: Customer, shop: FakeStripe) -> None:
    assert list_invoices(user=buyer.user) == []
    buyer.buy("scale")
    shop.advance(30)
    shop.deliver()
    shop.api.calls.clear()
    invoices = list_invoices(user=buyer.user)
    assert [(one["status"], str(one["total"]), one["currency"]) for one in invoices] == [
        ("paid", "99", "usd")
    ] * 2
    assert invoices[0]["created"] > invoices[1]["created"]
    assert not shop.api.calls


def test_an_event_costs_one_request(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    shop.api.calls.clear()
    shop.deliver()
    events = shop.world.events
    invoices = sum(event["type"].startswith("invoice.") for event in events)
    assert invoices
    assert sorted(shop.api.calls) == sorted(
        ["GET /v1/subscriptions"] * len(events) + ["GET /v1/invoices"] * invoices
    )


def test_a_changed_address_reaches_stripe(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    shop.deliver()
    shop.api.calls.clear()
    sync.resync_stale_account()
    assert not shop.api.calls
    buyer.user.email = "alice@new.example"
    buyer.user.save()
    cache.delete("billing-resync")
    sync.resync_stale_account()
    assert shop.world.every("customer")[0]["email"] == "alice@new.example"


def test_a_customer_deleted_at_stripe_ends_the_events(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    shop.world.delete_customer(shop.world.every("customer")[0])
    assert {one.status for one in shop.deliver()} == {200}
    assert (buyer.plan, buyer.account.stripe_customer_id) == ("free", "")


def test_events_of_a_customer_of_another_key_are_not_sent_for_ever(
    buyer: Customer, shop: FakeStripe
) -> None:
    buyer.buy("scale")
    del shop.world.objects[buyer.account.stripe_customer_id]
    assert {one.status for one in shop.deliver()} == {200}
    assert StripeEvent.objects.filter(detail="unknown to the key").exists()
    staff = Principal.of(make_user("staff@example.org", is_staff=True))
    sync.unlink_customer(account=buyer.account, by=staff)
    assert buyer.account.stripe_customer_id == ""


def test_staff_extends_a_trial_and_unlinks_no_customer_of_this_key(
    buyer: Customer, shop: FakeStripe
) -> None:
    buyer.buy("pro")
    shop.deliver()
    staff = Principal.of(make_user("staff@example.org", is_staff=True))
    before = buyer.account.trial_end
    assert before
    sync.extend_trial(account=buyer.account, days=7, by=staff)
    assert buyer.account.trial_end == before + timedelta(days=7)
    with pytest.raises(Conflict, match="Stripe knows this customer"):
        sync.unlink_customer(account=buyer.account, by=staff)


def test_money_that_is_asked_back_is_an_error_in_the_log(
    buyer: Customer, shop: FakeStripe, caplog: pytest.LogCaptureFixture
) -> None:
    buyer.buy("scale")
    dispute = {"id": "dp_1", "object": "dispute", "charge": "ch_1"}
    shop.world.tell("charge.dispute.created", dispute)
    shop.deliver()
    assert "charge.dispute.created" in caplog.text
    assert StripeEvent.objects.filter(type="charge.dispute.created").count() == 1


def test_failed_and_rejected_events_are_kept_for_staff(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    shop.fail(500)
    (first, *_) = shop.deliver(bad_share=1)
    assert first
    results = set(StripeEvent.objects.values_list("result", flat=True))
    assert results >= {"rejected", "failed"}


def test_the_mirror_stores_no_secret_key_and_no_email(
    buyer: Customer, shop: FakeStripe, settings: Any
) -> None:
    buyer.buy("scale")
    shop.deliver()
    models = apps.get_app_config("djstripe").get_models()
    rows = [str(row) for model in models for row in model._default_manager.values()]
    assert len(rows) >= 4  # customer, subscription, invoice, endpoint
    text = "\n".join(rows)
    assert "alice@example.org" not in text
    assert settings.STRIPE_SECRET_KEY not in text
    assert not APIKey.objects.exists()
    assert not MirroredCustomer.objects.exclude(subscriber=None).exists()
