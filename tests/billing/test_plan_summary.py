"""GET /billing/subscription."""

from datetime import timedelta
from typing import Any

from accounts.models import User
from billing.models import Plan
from billing.plans.summary import summarize_plan
from core.clock import database_now
from tests.harness.plans import set_limits, set_usage, subscribe
from tests.harness.rest_client import Rest


def asked(user: User) -> dict[str, Any]:
    answer = Rest.of(user).get("/billing/subscription")
    assert answer.status_code == 200
    body: dict[str, Any] = answer.json()
    return body


def states(user: User) -> dict[str, str]:
    return {quota.resource: quota.state for quota in summarize_plan(user=user).quotas}


def test_the_free_plan_shows_used_and_reserved_amounts(alice: User, billing: Plan) -> None:
    period = set_usage(alice, evolutions_used=10, evolutions_held=1, tokens_used=5)
    body = asked(alice)
    assert (body["plan"]["slug"], body["status"]) == ("free", "free")
    assert body["period_end"] == period.end.isoformat().replace("+00:00", "Z")
    evolutions, tokens = body["quotas"]
    assert (evolutions["used"], evolutions["held"], evolutions["limit"]) == (10, 1, 50)
    assert (evolutions["percent"], evolutions["state"]) == (20, "open")
    assert (tokens["resource"], tokens["used"]) == ("tokens", 5)


def test_a_paid_plan_shows_its_period_and_cancellation(alice: User, billing: Plan) -> None:
    end = database_now() + timedelta(days=3)
    paid = {"period_start": end - timedelta(days=30), "period_end": end}
    subscribe(alice, "scale", cancel_at_period_end=True, **paid)
    body = asked(alice)
    assert (body["plan"]["slug"], body["plan"]["max_playbooks"]) == ("scale", None)
    assert (body["status"], body["cancel_at_period_end"]) == ("active", True)
    assert body["period_end"].startswith(f"{end:%Y-%m-%d}")


def test_after_the_grace_period_the_free_plan_applies(alice: User, billing: Plan) -> None:
    over = database_now() - timedelta(hours=1)
    subscribe(alice, "pro", status="past_due", grace_until=over)
    body = asked(alice)
    assert (body["plan"]["slug"], body["status"]) == ("free", "past_due")
    assert body["grace_until"]


def test_a_quota_is_near_at_eighty_percent_and_reached_when_it_is_used(
    alice: User, billing: Plan
) -> None:
    set_limits(billing, monthly_evolutions=10, monthly_tokens=100)
    set_usage(alice, evolutions_used=7, tokens_used=80)
    assert states(alice) == {"evolutions": "open", "tokens": "near"}
    set_usage(alice, evolutions_used=10)
    assert states(alice) == {"evolutions": "reached", "tokens": "near"}


def test_other_users_usage_is_not_shown(alice: User, charlie: User, billing: Plan) -> None:
    set_usage(alice, evolutions_used=10)
    assert asked(charlie)["quotas"][0]["used"] == 0


def test_staff_see_their_own_plan(staff: User, billing: Plan) -> None:
    assert asked(staff)["plan"]["slug"] == "free"
