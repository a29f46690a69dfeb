"""Staff gives a user, or a playbook, a limit of their own."""

from decimal import Decimal

from accounts.models import User
from billing.models import Limit
from core.models import AuditEntry
from tests.harness.admin_client import AdminClient

ADD = "/admin/billing/limit/add/"
CAP = {"unit": "usd", "window": "day", "warn_percent": "80", "stops": "on"}


def test_staff_limits_a_users_day_and_the_log_says_so(desk: AdminClient, alice: User) -> None:
    desk.client.post(ADD, CAP | {"scope": "account", "user": str(alice.pk), "amount": "2.50"})
    assert Limit.objects.get(user=alice).amount == Decimal("2.50")
    assert AuditEntry.objects.filter(action="set_limit").count() == 1


def test_a_limit_fits_its_scope_and_unit(desk: AdminClient, alice: User) -> None:
    known = Limit.objects.count()
    for wrong in (
        {"scope": "server", "unit": "tokens"},
        {"scope": "account", "playbook_id": "6f1a41f3-6b8e-4d1e-9d5c-0a7a4a0f3d11"},
        {"scope": "account", "amount": "-1"},
    ):
        assert desk.client.post(ADD, CAP | {"amount": "2.50"} | wrong).status_code == 200
    assert Limit.objects.count() == known
