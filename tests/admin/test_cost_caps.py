"""Staff gives a user, or a playbook, a limit on cost of their own."""

from decimal import Decimal

from accounts.models import User
from billing.models import CostCap
from core.models import AuditEntry
from tests.harness.admin_client import AdminClient

ADD = "/admin/billing/costcap/add/"


def test_staff_limits_a_users_day_and_the_log_says_so(desk: AdminClient, alice: User) -> None:
    desk.client.post(ADD, {"user": str(alice.pk), "playbook_id": "", "usd_per_day": "2.50"})
    assert CostCap.objects.get(user=alice).usd_per_day == Decimal("2.50")
    assert AuditEntry.objects.filter(action="set_cost_cap").count() == 1


def test_a_limit_is_for_a_user_or_for_a_playbook(desk: AdminClient) -> None:
    answer = desk.client.post(ADD, {"user": "", "playbook_id": "", "usd_per_day": "2.50"})
    assert answer.status_code == 200
    assert not CostCap.objects.exists()
