"""`billing_setup` creates what is missing at Stripe, and nothing twice."""

from collections import Counter
from importlib import import_module
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from djstripe.models import WebhookEndpoint

from billing.models import BillingAccount
from tests.harness.fake_stripe.server import FakeStripe
from tests.harness.standard_plans import load_standard_plans
from tests.harness.stripe_customer import Customer

pytestmark = pytest.mark.django_db(transaction=True)


def set_up(*prices: str, **options: Any) -> str:
    out = StringIO()
    call_command("billing_setup", price=list(prices), stdout=out, **options)
    return out.getvalue()


def counted(fake: FakeStripe) -> Counter[str]:
    return Counter(row["object"] for row in fake.world.objects.values())


def test_running_it_again_creates_nothing(shop: FakeStripe) -> None:
    before = counted(shop)
    assert before == {"product": 2, "price": 2, "webhook_endpoint": 1} | {
        "billing_portal.configuration": 1
    }
    assert "unchanged" in set_up("pro=29", "scale=99")
    assert "unchanged" in set_up()
    assert counted(shop) == before


def test_the_endpoint_secret_is_stored_and_never_printed(shop: FakeStripe) -> None:
    (endpoint,) = shop.world.every("webhook_endpoint")
    row = WebhookEndpoint.objects.get()
    assert row.secret == endpoint["secret"]
    assert "secret" not in row.stripe_data
    assert endpoint["secret"] not in set_up()


def test_an_endpoint_with_a_lost_secret_is_recreated(buyer: Customer, shop: FakeStripe) -> None:
    WebhookEndpoint.objects.all().delete()
    assert "(created)" in set_up()
    assert counted(shop)["webhook_endpoint"] == 1
    buyer.buy("scale")
    assert {one.status for one in shop.deliver()} == {200}


def test_a_plan_without_a_price_is_named(fake: FakeStripe, settings: Any) -> None:
    settings.PUBLIC_URL = "https://ace.example.org"
    load_standard_plans()
    with pytest.raises(CommandError, match=r"scale \(ace_scale_monthly\)\. .* --price scale="):
        set_up("pro=29")


def test_a_price_may_return_to_an_earlier_amount(shop: FakeStripe) -> None:
    """29 → 290 → 29 within a day: the checkout asked for 290 and the portal for 29."""
    for amount in (290, 29):
        assert f"pro: sold for ${amount} a month" in set_up(f"pro={amount}")
        (sold,) = shop.world.every("price", lookup_key="ace_pro_monthly")
        (portal,) = shop.world.every("billing_portal.configuration")
        products = portal["features"]["subscription_update"]["products"]
        assert sold["unit_amount"] == amount * 100
        assert [sold["id"]] in [product["prices"] for product in products]


def test_a_price_that_stripe_does_not_take_is_an_error(
    shop: FakeStripe, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed = import_module("billing.stripe.gateway.setup")
    monkeypatch.setattr(replayed, "make_idempotency_key", lambda *parts: f"{parts[:4]}")
    set_up("pro=290")
    set_up("pro=29")
    with pytest.raises(CommandError, match="at a different price"):
        set_up("pro=290")


def test_the_checkout_asks_for_what_taxes_need(
    buyer: Customer, shop: FakeStripe, settings: Any
) -> None:
    settings.STRIPE_CHECKOUT = ["tax", "address", "tax_id"]
    buyer.subscribe("scale")
    (session,) = shop.world.every("checkout.session")
    assert session["automatic_tax"] == session["tax_id_collection"] == {"enabled": True}
    assert session["billing_address_collection"] == "required"
    assert session["customer_update"] == {"address": "auto", "name": "auto"}


@pytest.mark.parametrize(
    ("prices", "sentence"),
    [(["gold=1"], "no paid plan 'gold'"), (["pro"], "use a value like"), (["pro=0.001"], "like")],
)
def test_an_invalid_price_is_refused(
    fake: FakeStripe, settings: Any, prices: list[str], sentence: str
) -> None:
    settings.PUBLIC_URL = "https://ace.example.org"
    load_standard_plans()
    with pytest.raises(CommandError, match=sentence):
        set_up(*prices)
    assert not fake.api.calls


def test_without_a_public_url_no_endpoint_is_created(fake: FakeStripe, settings: Any) -> None:
    load_standard_plans()
    with pytest.raises(CommandError, match="PUBLIC_URL"):
        set_up("pro=29", "scale=99")
    assert "Webhook" not in set_up("pro=29", "scale=99", no_webhook=True)
    assert counted(fake)["webhook_endpoint"] == 0


def test_a_live_key_removes_test_mode_customers(
    buyer: Customer, shop: FakeStripe, settings: Any
) -> None:
    buyer.buy("scale")
    shop.deliver()
    settings.STRIPE_LIVE_MODE = True
    assert "Test-mode customers removed: 1" in set_up()
    account = BillingAccount.objects.get()
    assert (account.stripe_customer_id, account.status) == ("", "free")
    assert shop.world.every("customer")[0].get("email")  # nothing was deleted at Stripe
