"""Which plan applies to a user, and when."""

from datetime import timedelta

import pytest

from accounts.models import User
from billing.models import Plan
from billing.plans.entitlements import entitlement_for, plan_of
from core.clock import database_now
from tests.harness.plans import subscribe


def slug_of(user: User) -> str:
    plan = plan_of(user)
    return plan.slug if plan else ""


def test_while_billing_is_off_no_plan_applies(alice: User) -> None:
    subscribe(alice, "pro", status="active")
    assert plan_of(alice) is None
    assert entitlement_for(alice.pk) is None


def test_a_user_without_an_account_has_the_default_plan(alice: User, billing: Plan) -> None:
    assert slug_of(alice) == "free"


@pytest.mark.parametrize(
    ("status", "slug"),
    [
        ("active", "pro"),
        ("trialing", "pro"),
        ("past_due", "pro"),
        ("canceled", "free"),
        ("free", "free"),
    ],
)
def test_the_status_decides_whether_the_own_plan_applies(
    alice: User, billing: Plan, status: str, slug: str
) -> None:
    subscribe(alice, "pro", status=status)
    assert slug_of(alice) == slug


@pytest.mark.parametrize(("hours", "slug"), [(1, "pro"), (-1, "free")])
def test_a_failed_payment_keeps_the_plan_until_its_grace_is_over(
    alice: User, billing: Plan, hours: int, slug: str
) -> None:
    grace = database_now() + timedelta(hours=hours)
    subscribe(alice, "pro", status="past_due", grace_until=grace)
    assert slug_of(alice) == slug
