"""The plan page in each of its states, and its redirects to Stripe."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone

from accounts.models import User
from billing.models import BillingAccount, Plan
from tests.factories import make_key, make_playbook, make_user
from tests.harness.fake_stripe.server import FakeStripe
from tests.harness.plans import set_limits, set_usage, subscribe
from tests.harness.standard_plans import load_standard_plans

NOW = timezone.now()
SOON, LATER, AGO = (NOW + timedelta(days=days) for days in (5, 20, -2))
PAYING: dict[str, Any] = {
    "stripe_customer_id": "cus_1",
    "stripe_subscription_id": "sub_1",
    "period_start": LATER - timedelta(days=31),
    "period_end": LATER,
}
STATE_TEXTS = {
    "trialing": (PAYING | {"status": "trialing", "trial_end": SOON}, "Your trial ends on"),
    "active": (PAYING | {"status": "active"}, "Renews on"),
    "ending": (
        PAYING | {"status": "active", "cancel_at_period_end": True},
        "You cancelled this plan. It stays active until",
    ),
    "past_due": (
        PAYING | {"status": "past_due", "grace_until": SOON},
        "The last payment failed. You keep this plan until",
    ),
    "lapsed": (
        PAYING | {"status": "past_due", "grace_until": AGO},
        "the grace period is over, so you're on the Free plan",
    ),
    "ended": (
        {"status": "canceled", "stripe_customer_id": "cus_1"},
        "Your subscription has ended. You're on the Free plan",
    ),
    "unmatched": (
        PAYING | {"status": "active", "plan": None},
        "a plan that isn't set up on this server",
    ),
    "free": ({"status": "free", "plan": None}, "No charge."),
}


@pytest.fixture
def alice(db: None) -> User:
    load_standard_plans()
    return make_user("alice@example.org")


@pytest.fixture
def own(alice: User, client: Client) -> Client:
    client.force_login(alice)
    return client


def read(client: Client, address: str = "/billing", status: int = 200) -> str:
    answer = client.get(address)
    assert answer.status_code == status
    return " ".join(answer.content.decode().split())


@pytest.mark.parametrize("state", sorted(STATE_TEXTS))
def test_each_state_of_the_plan_is_explained(own: Client, alice: User, state: str) -> None:
    fields, words = STATE_TEXTS[state]
    subscribe(alice, "pro", **fields)
    answer = own.get("/billing")
    assert answer.context["state"] == state
    text = " ".join(answer.content.decode().split())
    assert words in text
    assert ("Change or cancel plan" in text) is ("stripe_subscription_id" in fields)
    assert ("Manage billing</button>" in text) is ("stripe_customer_id" in fields)
    assert ("Choose Pro" in text) is ("stripe_subscription_id" not in fields)


def test_a_new_user_sees_the_free_plan_and_its_usage(own: Client, alice: User) -> None:
    make_playbook(alice)
    make_key(alice)
    set_usage(alice, evolutions_used=10, tokens_used=500_000)
    text = read(own)
    for words in ("10 of 50", "500,000 of 1,000,000", "1 of 5", "1 of 3", "Choose Scale"):
        assert words in text
    for words in ("50 evolutions", "30,000,000 tokens", "5 playbooks", "3 API keys"):
        assert f"<li>{words}" in text


@pytest.mark.parametrize(
    ("used", "state", "words"),
    [
        (39, "ok", "39 of 50"),
        (40, "warning", "Over 80% used. At 100%, evolutions wait until"),
        (50, "reached", "You've reached this month's evolution limit. Evolutions resume on"),
    ],
)
def test_nearly_and_fully_used_limits_show_the_date(
    own: Client, alice: User, used: int, state: str, words: str
) -> None:
    set_usage(alice, evolutions_used=used)
    assert words in read(own)
    assert f'class="gauge {state}"' in read(own)


def test_the_usage_page_shows_used_up_limits(own: Client, alice: User) -> None:
    set_usage(alice, evolutions_used=50, tokens_used=10)
    text = read(own, "/usage")
    assert "You've used 50 of the 50 evolutions in your plan. Evolutions wait until" in text
    assert "tokens in your plan" not in text


def test_items_above_a_smaller_limit_keep_working(own: Client, alice: User) -> None:
    set_limits(Plan.objects.get(slug="free"), max_playbooks=1)
    for name in ("one", "two"):
        set_limits(Plan.objects.get(slug="free"), max_playbooks=None)
        make_playbook(alice, name=name)
    set_limits(Plan.objects.get(slug="free"), max_playbooks=1)
    assert "They keep working, but you can't create more." in read(own)


def test_a_plan_without_limits_has_no_bars(own: Client, alice: User) -> None:
    nothing = {"monthly_evolutions": None, "monthly_tokens": None, "max_playbooks": None}
    set_limits(Plan.objects.get(slug="free"), **nothing, max_keys=None)
    assert "<meter" not in read(own)


def test_subscribing_redirects_and_grants_nothing(
    own: Client, alice: User, shop: FakeStripe
) -> None:
    answer = own.post("/billing/subscribe", {"plan": "pro"})
    assert answer.status_code == 303
    assert answer["Location"].startswith(shop.base)
    assert BillingAccount.objects.get(user=alice).status == "free"


def test_after_payment_the_page_polls_until_stripe_confirms(
    own: Client, alice: User, shop: FakeStripe
) -> None:
    text = read(own, "/billing?paid=1")
    assert "Waiting for Stripe’s confirmation" in text
    assert 'hx-get="/billing/confirmation?n=1"' in text
    assert "hx-get" not in read(own, "/billing/confirmation?n=40")
    subscribe(alice, "pro", **PAYING)
    answer = own.get("/billing/confirmation", headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Redirect"]) == (204, "/billing?paid=1")
    assert own.get("/billing/confirmation")["Location"] == "/billing?paid=1"
    assert "You're on the Pro plan" in read(own, "/billing?paid=1")


def test_stripe_is_not_called_at_every_poll(own: Client, alice: User, shop: FakeStripe) -> None:
    own.post("/billing/subscribe", {"plan": "pro"})
    cache.clear()
    before = len(shop.api.calls)
    read(own, "/billing?paid=1")
    asked = len(shop.api.calls)
    read(own, "/billing/confirmation")
    assert asked > before
    assert len(shop.api.calls) == asked


def test_a_canceled_checkout_is_explained(own: Client) -> None:
    assert "Nothing was charged and your plan hasn't changed" in read(own, "/billing?paid=no")


@pytest.mark.parametrize(
    ("path", "sent", "words"),
    [
        ("subscribe", {"plan": "gold"}, "Choose one of: pro, scale."),
        ("subscribe", {}, "Choose one of: pro, scale."),
        ("portal", {}, "You have no paid plan yet"),
    ],
)
def test_a_refusal_redirects_back_with_its_reason(
    own: Client, path: str, sent: dict[str, str], words: str
) -> None:
    answer = own.post(f"/billing/{path}", sent, follow=True)
    assert answer.redirect_chain == [("/billing", 302)]
    assert words in answer.content.decode()


def test_the_page_works_while_stripe_is_down(own: Client, alice: User, shop: FakeStripe) -> None:
    shop.fail(*[500] * 20)
    answer = own.post("/billing/subscribe", {"plan": "pro"}, follow=True)
    assert "is not responding" in answer.content.decode()
    assert "Waiting for Stripe" in read(own, "/billing?paid=1")


def test_while_billing_is_off_every_page_says_so(own: Client, alice: User, settings: Any) -> None:
    subscribe(alice, "pro", **PAYING)
    settings.BILLING_ENABLED = False
    for address in ("/billing", "/billing?paid=1", "/billing/confirmation"):
        assert "Billing is not enabled on this server" in read(own, address)
    for address in ("/billing/subscribe", "/billing/portal"):
        answer = own.post(address)
        assert answer.status_code == 404
        assert "no plans, payments or plan limits" in answer.content.decode()


def test_another_user_sees_their_own_plan(alice: User, client: Client) -> None:
    subscribe(alice, "pro", **PAYING)
    client.force_login(make_user("charlie@example.org"))
    text = read(client)
    assert "Free plan" in text
    assert "Manage billing" not in text
