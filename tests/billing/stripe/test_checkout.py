"""Checkout: one customer, one open checkout, one subscription."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from django.core import mail
from django.core.cache import cache
from django.test import Client as Browser
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from billing.stripe.subscriptions import checkout_lock
from core.models import AuditEntry, RateCounter
from tests.factories import make_key, make_user
from tests.harness.fake_stripe.server import FakeStripe
from tests.harness.stripe_customer import Customer

pytestmark = pytest.mark.django_db(transaction=True)


def test_subscribing_again_returns_the_open_checkout(buyer: Customer, shop: FakeStripe) -> None:
    first, second = buyer.subscribe("scale").json(), buyer.subscribe("scale").json()
    assert first == second
    (entry, _) = AuditEntry.objects.filter(action="subscribe")
    assert (entry.actor, entry.detail) == ("alice@example.org", {"plan": "scale"})


def test_choosing_another_plan_expires_the_first_checkout(
    buyer: Customer, shop: FakeStripe
) -> None:
    first, second = (buyer.subscribe(plan).json()["url"] for plan in ("scale", "pro"))
    assert (buyer.pay(first).status_code, buyer.pay(second).status_code) == (410, 303)
    again = buyer.subscribe("scale")
    assert again.status_code == 409  # although no event has come yet


def test_two_concurrent_tabs_leave_one_open_checkout(buyer: Customer, shop: FakeStripe) -> None:
    buyer.subscribe("scale")  # the customer is known, and no page of another plan is open
    gate = shop.hold("/v1/checkout/sessions")
    with ThreadPoolExecutor(2) as tabs:
        first = tabs.submit(buyer.subscribe, "pro")
        assert gate.reached.wait(10)
        second = tabs.submit(buyer.subscribe, "scale")
        gate.opened.set()
        pages = [first.result().json()["url"], second.result().json()["url"]]
    assert sorted(buyer.pay(page).status_code for page in pages) == [303, 410]
    assert len(shop.world.every("subscription")) == 1


def test_releasing_an_expired_lock_keeps_the_next_holders(alice: User) -> None:
    with ExitStack() as slow:
        slow.enter_context(checkout_lock(alice))
        RateCounter.objects.filter(key__contains="checkout").update(expires_at=0)
        with checkout_lock(alice):
            slow.close()
            assert not cache.add(f"checkout-{alice.pk}", 1)
        assert cache.add(f"checkout-{alice.pk}", 1)  # the other request ended


def test_a_checkout_paid_meanwhile_prevents_a_second_one(buyer: Customer, shop: FakeStripe) -> None:
    page = buyer.subscribe("scale").json()["url"]
    gate = shop.hold("/v1/checkout/sessions")
    with ThreadPoolExecutor(1) as tabs:
        other = tabs.submit(buyer.subscribe, "pro")
        assert gate.reached.wait(10)
        buyer.pay(page)
        gate.opened.set()
        assert other.result().json()["error"]["code"] == "already_subscribed"


def test_two_subscriptions_notify_the_user_and_staff(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    price = shop.world.every("price")[0]
    shop.world.begin(buyer.account.stripe_customer_id, price, 0)
    shop.deliver()
    shop.deliver(again=True)
    assert buyer.account.duplicate_subscription_id
    assert [email.subject for email in mail.outbox] == ["You have two paid subscriptions"]
    entry = AuditEntry.objects.filter(action="change_subscription").order_by("at").last()
    assert entry and entry.detail["second"] is True
    two = Browser()
    two.force_login(buyer.user)
    assert "You have two paid subscriptions" in two.get("/billing").content.decode()


@pytest.mark.parametrize("plan", ["free", "gold", ""])
def test_only_a_paid_plan_can_be_chosen(buyer: Customer, plan: str) -> None:
    answer = buyer.subscribe(plan)
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, ["plan"])


def test_a_plan_without_a_price_at_stripe_cannot_be_chosen(
    buyer: Customer, shop: FakeStripe
) -> None:
    for price in shop.world.every("price"):
        price["active"] = False
    answer = buyer.subscribe("pro")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "plan_not_offered")


@pytest.mark.parametrize("status", [429, 500, 401])
def test_a_failure_of_stripe_changes_nothing(
    buyer: Customer, shop: FakeStripe, status: int
) -> None:
    shop.fail(status)
    answer = buyer.subscribe("scale")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "payment_unavailable")
    assert buyer.subscribe("scale").status_code == 200


def test_users_have_their_own_portal_or_none(buyer: Customer, live_server: LiveServer) -> None:
    buyer.buy("scale")
    charlie = Customer.of(make_user("charlie@example.org"), live_server.url)
    answer = charlie.post("/billing/portal")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "no_customer")
    assert buyer.post("/billing/portal").status_code == 200


def test_an_api_key_cannot_spend_money(buyer: Customer, live_server: LiveServer) -> None:
    key = Customer(buyer.user, buyer.site, make_key(buyer.user)[1])
    assert key.subscribe("scale").status_code == 403
    assert key.post("/billing/portal").status_code == 403
    assert key.put("/billing/overage", {"on": True}).status_code == 403


def test_a_customer_deleted_at_stripe_is_recreated(buyer: Customer, shop: FakeStripe) -> None:
    buyer.buy("scale")
    shop.deliver()
    shop.world.delete_customer(shop.world.every("customer")[0])
    buyer.buy("scale")
    shop.deliver()
    assert (buyer.plan, len(shop.world.every("customer"))) == ("scale", 2)
