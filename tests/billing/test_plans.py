"""Which plan applies to a user, and when."""

from datetime import timedelta

import pytest

from accounts.models import User
from billing.models import BillingAccount, Plan
from billing.plans.entitlements import entitlement_for, plan_of
from billing.plans.standard_plans import load_standard_plans
from core.clock import database_now
from tests.harness.plans import set_limits, subscribe


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
    account = subscribe(alice, "pro", status=status)
    assert slug_of(alice) == slug
    entitled = BillingAccount.objects.entitled(database_now()).filter(pk=account.pk)
    assert entitled.exists() == (slug == "pro")


@pytest.mark.parametrize(("hours", "slug"), [(1, "pro"), (-1, "free")])
def test_a_failed_payment_keeps_the_plan_until_its_grace_is_over(
    alice: User, billing: Plan, hours: int, slug: str
) -> None:
    grace = database_now() + timedelta(hours=hours)
    account = subscribe(alice, "pro", status="past_due", grace_until=grace)
    assert slug_of(alice) == slug
    entitled = BillingAccount.objects.entitled(database_now()).filter(pk=account.pk)
    assert entitled.exists() == (hours > 0)


def test_loading_standard_plans_keeps_the_changes_of_staff(alice: User) -> None:
    load_standard_plans()
    set_limits(Plan.objects.get(slug="free"), monthly_evolutions=3)
    assert load_standard_plans() == 0
    assert Plan.objects.get(slug="free").included["monthly_evolutions"] == 3


@pytest.mark.django_db
def test_a_default_plan_of_another_name_stays_the_only_one() -> None:
    Plan.objects.all().delete()
    Plan.objects.create(slug="guests", name="Guests", is_default=True)
    assert load_standard_plans() == 3
    assert list(Plan.objects.filter(is_default=True).values_list("slug", flat=True)) == ["guests"]
