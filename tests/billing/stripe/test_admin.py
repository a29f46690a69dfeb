"""The admin of payment."""

import pytest
from django.test import Client
from djstripe.models import Invoice, Subscription, WebhookEndpoint
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from billing.models import StripeEvent
from core.models import AuditEntry
from tests.factories import make_user
from tests.harness.admin_client import AdminClient
from tests.harness.clients import log_in_client
from tests.harness.fake_stripe.server import FakeStripe
from tests.harness.stripe_customer import Customer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def desk(live_server: LiveServer) -> AdminClient:
    client = Client()
    log_in_client(client, make_user("staff@example.org", is_staff=True, is_superuser=True))
    return AdminClient(client)


def test_the_plan_of_a_user_is_shown(buyer: Customer, shop: FakeStripe, desk: AdminClient) -> None:
    buyer.buy("pro")
    shop.deliver()
    assert "Pro, trialing" in desk.rows("accounts_user")
    assert "Pro, trialing" in desk.row(buyer.user)
    assert "free" in desk.row(User.objects.get(email="staff@example.org"))


def test_staff_sync_an_account(buyer: Customer, shop: FakeStripe, desk: AdminClient) -> None:
    buyer.buy("scale")
    assert "1 account synced." in desk.act("resync_from_stripe", buyer.account)
    assert buyer.plan == "scale"
    assert AuditEntry.objects.get(action="resync_account").actor == "staff@example.org"
    shop.fail(500)
    assert "is not responding" in desk.act("resync_from_stripe", buyer.account)


def test_mirrored_rows_are_shown_without_secrets(
    buyer: Customer, shop: FakeStripe, desk: AdminClient
) -> None:
    buyer.buy("scale")
    shop.deliver()
    assert "99 USD" in desk.rows("djstripe_invoice")
    for model in (Subscription, Invoice, WebhookEndpoint, StripeEvent):
        row = model.objects.first()
        assert row is not None
        name = f"{model._meta.app_label}_{model._meta.model_name}"
        pages = desk.rows(name) + desk.row(row)
        assert "whsec_" not in pages
    assert desk.client.get("/admin/djstripe/apikey/").status_code == 404
