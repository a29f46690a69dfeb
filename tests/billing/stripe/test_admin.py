"""The admin of payment."""

import time
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from billing.models import DailySpend
from billing.usage.daily_spend import mismatched_days
from billing.usage.margin import margins
from core.models import AuditEntry
from tests.factories import make_user
from tests.harness.admin_client import AdminClient, is_denied
from tests.harness.clients import log_in_client, logged_in_client
from tests.harness.fake_stripe.server import FakeStripe
from tests.harness.stripe_customer import Customer
from tests.pages.test_usage import use

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


def test_the_margin_page_shows_revenue_beside_the_cost_of_models(
    buyer: Customer, shop: FakeStripe, desk: AdminClient
) -> None:
    shop.world.now = int(time.time())
    buyer.buy("scale")
    shop.deliver()
    other = make_user("dora@example.org")
    gone = make_user("gone@example.org")
    for user, usd in ((buyer.user, 90), (other, 7), (gone, 1)):
        use(user, cost_usd=Decimal(usd))
    use(other, cost_usd=Decimal(50), own_key=True)
    gone.delete()
    for day, total in list(mismatched_days()):  # without migrations there is no trigger
        DailySpend.objects.create(**day._asdict(), spent_usd=total)
    found = margins(now=timezone.now())
    rows: dict[str, Any] = {row.email: (row.revenue, row.cost_usd, row.margin) for row in found}
    assert rows == {
        "dora@example.org": (0, 7, -7),
        "deleted accounts": (0, 1, -1),
        "alice@example.org": (99, 90, 9),
    }
    page = desk.client.get("/admin/billing/billingaccount/margin/").content.decode()
    assert "<td>-7.00</td>" in page
    assert is_denied(logged_in_client(other), "/admin/billing/billingaccount/margin/")
    listed = desk.rows("billing_billingaccount")
    assert f"dashboard.stripe.com/test/customers/{buyer.account.stripe_customer_id}" in listed
    assert "checkout.session.completed" in desk.rows(
        "billing_stripeevent", customer_id=buyer.account.stripe_customer_id
    )


def test_the_admin_of_dj_stripe_with_its_secrets_is_not_there(
    shop: FakeStripe, desk: AdminClient
) -> None:
    for model in ("apikey", "webhookendpoint", "invoice"):
        assert desk.client.get(f"/admin/djstripe/{model}/").status_code == 404
