"""Webhooks in any order, duplicated, forged or concurrent: the account matches Stripe."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from django.db import connections

from billing.models import BillingAccount, StripeEvent
from billing.stripe import sync
from billing.stripe.gateway import mirror
from core.models import AuditEntry
from tests.harness.fake_stripe.delivery import Sent, deliver
from tests.harness.fake_stripe.server import FakeStripe
from tests.harness.fake_stripe.world import FAILS_LATER
from tests.harness.stripe_customer import Customer

pytestmark = pytest.mark.django_db(transaction=True)
SAID = (
    *("plan__slug", "status", "period_start", "period_end", "cancel_at_period_end"),
    *("grace_until", "trial_end", "stripe_subscription_id"),
)


def account_state(buyer: Customer) -> tuple[object, ...]:
    """The subscription fields of the account."""
    found: tuple[object, ...] = BillingAccount.objects.values_list(*SAID).get(user=buyer.user)
    return found


def live_through(buyer: Customer, shop: FakeStripe) -> None:
    """A trial, a change of plan, a failed renewal: seven weeks without a single event delivered."""
    prices = {row["lookup_key"]: row["id"] for row in shop.world.every("price")}
    buyer.buy("pro")
    shop.advance(15)
    buyer.manage(price=prices["ace_scale_monthly"])
    shop.world.cards[buyer.account.stripe_customer_id] = FAILS_LATER
    shop.advance(31)


def read_slowly(account: BillingAccount) -> None:
    """Run in a thread, which closes its own connection."""
    sync.sync_account(account=account)
    connections.close_all()


@pytest.mark.databases
def test_duplicates_wrong_order_and_forgeries_change_nothing(
    buyer: Customer, shop: FakeStripe
) -> None:
    live_through(buyer, shop)
    shop.deliver()
    expected = account_state(buyer)
    assert expected[:2] == ("scale", "past_due")
    for seed in range(2):
        mirror.delete_customer_rows(buyer.account.stripe_customer_id)
        BillingAccount.objects.update(status="free", plan=None, stripe_subscription_id="")
        StripeEvent.objects.all().delete()
        sent = shop.deliver(copies=3, bad_share=0.1, seed=seed, again=True)
        assert account_state(buyer) == expected
        assert {one.status for one in sent if one.forgery} == {400}
        assert {one.status for one in sent if not one.forgery} == {200}


def test_every_forgery_is_refused(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    sent = shop.deliver(bad_share=1, seed=4)
    assert len({one.forgery for one in sent}) > 2
    assert {(one.status == 400) == bool(one.forgery) for one in sent} == {True}


@pytest.mark.databases
def test_concurrent_events_leave_the_latest_state(buyer: Customer, shop: FakeStripe) -> None:
    prices = [row["id"] for row in shop.world.every("price")]
    buyer.buy("scale")
    page = buyer.post("/billing/portal").json()["url"]
    post = threading.Thread(target=shop.deliver, kwargs={"copies": 3, "at_once": 4})
    post.start()
    for turn in range(6):
        with shop.world.lock:
            price = shop.world.get(prices[turn % 2], "price")
            shop.world.change_price(shop.subscription(), price, {})
    assert page
    post.join()
    sent = shop.deliver(copies=2, at_once=6)
    assert {one.status for one in sent} == {200}
    paid = shop.subscription()["items"]["data"][0]["price"]["lookup_key"]
    assert account_state(buyer)[0] == {"ace_scale_monthly": "scale", "ace_pro_monthly": "pro"}[paid]


@pytest.mark.databases
def test_an_outdated_answer_is_discarded(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    shop.deliver()
    gate = shop.hold("/v1/invoices")
    slow = threading.Thread(target=read_slowly, args=[buyer.account])
    slow.start()
    assert gate.reached.wait(20)
    with shop.world.lock:
        shop.world.end(shop.subscription())
    shop.deliver()
    gate.opened.set()
    slow.join()
    assert account_state(buyer)[:2] == (None, "canceled")


def test_the_content_of_an_event_grants_nothing(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    (created,) = [e for e in shop.world.events if e["type"] == "customer.subscription.created"]
    shop.world.end(shop.subscription())
    endpoint = shop.world.every("webhook_endpoint")[0]
    (sent,) = deliver([Sent(created, endpoint["url"], endpoint["secret"])])
    assert (sent.status, buyer.plan) == (200, "free")


@pytest.mark.parametrize("digest", ["\xe9", "e\u0301"])
def test_a_non_ascii_signature_is_refused(shop: FakeStripe, digest: str) -> None:
    header = f"t={int(time.time())},v1={digest}".encode()
    url = shop.world.every("webhook_endpoint")[0]["url"]
    answer = httpx2.post(
        url, content=b"{}", headers={b"Stripe-Signature": header}, trust_env=False, timeout=30
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_signature")


@pytest.mark.databases
@pytest.mark.parametrize(
    "strange",
    [
        {"id": "evt_\x00"},
        {"id": "e" * 256},
        {"data": {"object": {"object": "invoice", "customer": "cus_\ud800"}}},
        {"data": {"object": {"object": "invoice", "customer": ["cus_1"]}}},
    ],
)
def test_a_signed_body_that_is_not_an_event_is_refused(
    buyer: Customer, shop: FakeStripe, strange: dict[str, object]
) -> None:
    buyer.buy("scale")
    endpoint = shop.world.every("webhook_endpoint")[0]
    event = shop.world.events[0] | strange
    (sent,) = deliver([Sent(event, endpoint["url"], endpoint["secret"])])
    assert sent.status == 400


def test_an_event_of_an_unknown_customer_is_ignored(buyer: Customer, shop: FakeStripe) -> None:
    shop.world.add("cus", "customer", email="somebody@example.org")
    shop.world.tell("customer.deleted", shop.world.every("customer")[0])
    assert [one.status for one in shop.deliver()] == [200]
    assert not BillingAccount.objects.exists()


def test_an_event_during_an_outage_of_stripe_is_sent_again(
    buyer: Customer, shop: FakeStripe
) -> None:
    buyer.buy("scale")
    shop.fail(500)
    assert [one.status for one in shop.deliver()] == [503, 200, 200]
    assert buyer.plan == "scale"


def test_one_change_is_one_audit_entry(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    shop.deliver(copies=3)
    (entry,) = AuditEntry.objects.filter(action="change_subscription")
    assert (entry.actor, entry.owner_id, entry.detail["plan"]) == ("", buyer.user.pk, "scale")


@pytest.mark.databases
def test_two_concurrent_clicks_create_one_customer_and_one_checkout(
    buyer: Customer, shop: FakeStripe
) -> None:
    with ThreadPoolExecutor(4) as pool:
        urls = {one.json()["url"] for one in pool.map(buyer.subscribe, ["scale"] * 4)}
    assert len(urls) == 1
    assert len(shop.world.every("customer")) == 1
