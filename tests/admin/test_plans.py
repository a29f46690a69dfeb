"""Staff changes what plans include, gives one without payment, and gives holds back."""

import uuid
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse
from pytest_django import Settings

from accounts.models import User
from billing.limits.quota import reserve_quota
from billing.models import BillingAccount, Plan, QuotaHold, QuotaResource
from billing.plans.complimentary_plans import grant_plan
from billing.plans.entitlements import plan_of
from billing.plans.standard_plans import load_standard_plans
from core.models import AuditEntry
from core.security.scopes import Principal
from tests.harness.admin_client import AdminClient
from tests.harness.plans import subscribe, used_and_held

LISTS = ("plan", "billingaccount", "quotaperiod")


@pytest.fixture
def plans(settings: Settings, db: None) -> dict[str, Plan]:
    settings.BILLING_ENABLED = True
    load_standard_plans()
    return {plan.slug: plan for plan in Plan.objects.all()}


@pytest.fixture
def hold(alice: User, plans: dict[str, Plan]) -> QuotaHold:
    reserve_quota(
        user_id=alice.pk,
        resource=QuotaResource.EVOLUTIONS,
        amount=1,
        holder_id=uuid.UUID(int=7),
        lifetime=timedelta(minutes=1),
    )
    return QuotaHold.objects.get()


def form_of(plan: Plan, **changes: object) -> dict[str, object]:
    names = [field.name for field in Plan._meta.fields if field.editable]
    fields = {name: getattr(plan, name) for name in names} | changes
    return {name: "" if value is None else value for name, value in fields.items() if value != 0}


def test_a_changed_limit_applies_at_once_and_the_log_says_so(
    desk: AdminClient, plans: dict[str, Plan], alice: User
) -> None:
    free = plans["free"]
    address = reverse("admin:billing_plan_change", args=[free.pk])
    fields = {"position": 1, "trial_days": 0, "is_active": "on", "is_default": "on"}
    answer = desk.client.post(address, form_of(free, monthly_evolutions=7) | fields)
    assert answer.status_code == 302
    plan = plan_of(alice)
    assert plan is not None and plan.monthly_evolutions == 7
    assert AuditEntry.objects.get(action="set_plan").detail["monthly_evolutions"] == 7


def test_shorter_trace_retention_sends_the_notice_that_staff_sees(
    desk: AdminClient, plans: dict[str, Plan]
) -> None:
    pro, days = plans["pro"], plans["pro"].retention_days
    address = reverse("admin:billing_plan_change", args=[pro.pk])
    fields = {"position": 2, "trial_days": 0, "is_active": "on"}
    answer = desk.client.post(address, form_of(pro, retention_days=7) | fields, follow=True)
    pro.refresh_from_db()
    assert (pro.retention_days, pro.previous_retention_days) == (
        7,
        days,
    ) and pro.retention_shortened_at
    assert "notified by email" in answer.content.decode()


def test_the_default_plan_cannot_be_deleted(desk: AdminClient, plans: dict[str, Plan]) -> None:
    address = reverse("admin:billing_plan_delete", args=[plans["free"].pk])
    assert desk.client.post(address, {"post": "yes"}).status_code == 403
    assert Plan.objects.filter(slug="free").exists()


def test_another_plan_is_made_everybodys_in_one_step(
    desk: AdminClient, plans: dict[str, Plan], alice: User
) -> None:
    other = Plan.objects.create(slug="starter", name="Starter")
    assert "1 default plan set" in desk.act("set_as_default", other)
    assert plan_of(alice) == other
    assert "Only an active, free plan" in unescape(desk.act("set_as_default", plans["pro"]))
    assert plan_of(alice) == other


def test_a_default_plan_that_lost_its_mark_is_found(plans: dict[str, Plan], alice: User) -> None:
    Plan.objects.update(is_default=False)
    assert plan_of(alice) == plans["free"]


def test_who_may_only_look_has_nothing_read_again_and_makes_no_plan_everybodys(
    desk: AdminClient, plans: dict[str, Plan], alice: User, staff: User
) -> None:
    subscribe(alice, "pro")
    User.objects.filter(pk=staff.pk).update(is_superuser=False)
    rows = Permission.objects.filter(content_type__app_label="billing", codename__startswith="view")
    staff.user_permissions.set(rows)
    for name in ("plan", "billingaccount"):
        assert 'name="action"' not in desk.rows(f"billing_{name}")


def test_a_plan_is_given_without_payment_and_withdrawn(
    desk: AdminClient, plans: dict[str, Plan], alice: User
) -> None:
    address = reverse("admin:billing_billingaccount_add")
    fields = {"user": str(alice.pk), "plan": str(plans["team"].pk)}
    assert desk.client.post(address, fields).status_code == 302
    assert plan_of(alice) == plans["team"]
    desk.act("withdraw", BillingAccount.objects.get())
    assert plan_of(alice) == plans["free"]
    actions = AuditEntry.objects.filter(owner_id=alice.pk).values_list("action", flat=True)
    assert set(actions) == {"grant_plan", "withdraw_plan"}


def test_a_given_plan_can_be_changed_on_its_form(
    desk: AdminClient, plans: dict[str, Plan], alice: User, staff: User
) -> None:
    account = subscribe(alice, "pro")
    address = reverse("admin:billing_billingaccount_change", args=[account.pk])
    assert desk.client.post(address, {"plan": str(plans["team"].pk)}).status_code == 302
    assert plan_of(alice) == plans["team"]


def test_what_the_payment_provider_says_staff_cannot_change(
    desk: AdminClient, plans: dict[str, Plan], alice: User
) -> None:
    account = subscribe(alice, "pro", stripe_subscription_id="sub_1")
    address = reverse("admin:billing_billingaccount_change", args=[account.pk])
    assert desk.client.post(address, {"plan": str(plans["team"].pk)}).status_code == 403
    assert "This user has a subscription" in desk.act("withdraw", account)
    assert plan_of(alice) == plans["pro"]


def test_somebody_whose_payment_failed_is_found(
    desk: AdminClient, plans: dict[str, Plan], alice: User, charlie: User
) -> None:
    subscribe(alice, "pro", status="past_due")
    subscribe(charlie, "pro")
    page = desk.rows("billing_billingaccount", trouble="grace")
    assert alice.email in page
    assert charlie.email not in page


def test_the_holds_of_a_period_are_released_once(
    desk: AdminClient, hold: QuotaHold, alice: User
) -> None:
    assert "1 reservation released" in desk.act("release_holds", hold.period)
    assert used_and_held(alice) == (0, 0)
    assert AuditEntry.objects.get(action="release_hold").owner_id == alice.pk


@pytest.mark.parametrize("name", LISTS)
def test_each_list_says_when_billing_is_off(
    desk: AdminClient, settings: Settings, name: str, hold: QuotaHold
) -> None:
    assert "Billing is not enabled" not in desk.rows(f"billing_{name}")
    settings.BILLING_ENABLED = False
    assert "Billing is not enabled" in desk.rows(f"billing_{name}")


def test_lists_are_exported(desk: AdminClient, hold: QuotaHold, alice: User, plans: object) -> None:
    grant_plan(user=alice, plan=Plan.objects.get(slug="pro"), by=_staff())
    for name in LISTS:
        assert len(desk.export(f"billing_{name}")) >= 2


def _staff() -> Principal:
    return Principal.of(User.objects.get(is_staff=True))
