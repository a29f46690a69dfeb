"""Staff changes what plans include, and gives one without payment."""

from decimal import Decimal
from html import unescape

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse
from pytest_django import Settings

from accounts.models import User
from billing.limits.quota import reserve_evolution
from billing.models import BillingAccount, Plan, QuotaPeriod
from billing.plans.entitlements import grant_plan, plan_of
from core.clock import database_now
from core.models import AuditEntry
from core.security.scopes import Principal
from tests.harness.admin_client import AdminClient
from tests.harness.plans import subscribe
from tests.harness.standard_plans import load_standard_plans

LISTS = ("plan", "billingaccount", "quotaperiod")


@pytest.fixture
def plans(settings: Settings, db: None) -> dict[str, Plan]:
    settings.BILLING_ENABLED = True
    load_standard_plans()
    return {plan.slug: plan for plan in Plan.objects.all()}


@pytest.fixture
def month(alice: User, plans: dict[str, Plan]) -> QuotaPeriod:
    return QuotaPeriod.objects.get(pk=str(reserve_evolution(alice.pk)))


def form_of(plan: Plan, **changes: object) -> dict[str, object]:
    """The plan's form as the browser sends it, with its limits."""
    names = [field.name for field in Plan._meta.fields if field.editable and field.name != "id"]
    fields = {name: getattr(plan, name) for name in names if name != "is_default"}
    rows = list(plan.limits.all())
    fields |= {"limits-TOTAL_FORMS": len(rows), "limits-INITIAL_FORMS": len(rows)}
    for number, row in enumerate(rows):
        of = {"id": row.pk, "plan": plan.pk, "unit": row.unit, "window": row.window}
        of["amount"] = row.amount
        fields |= {f"limits-{number}-{name}": value for name, value in of.items()}
    fields |= changes
    return {
        name: "" if value is None else value for name, value in fields.items() if value is not False
    }


def test_a_changed_limit_applies_at_once_and_the_log_says_so(
    desk: AdminClient, plans: dict[str, Plan], alice: User
) -> None:
    free = plans["free"]
    address = reverse("admin:billing_plan_change", args=[free.pk])
    at = [row.unit for row in free.limits.all()].index("evolutions")
    new = len(free.limits.all())
    added = {"id": "", "plan": free.pk, "unit": "usd", "window": "month", "amount": "3"}
    changes: dict[str, object] = {f"limits-{new}-{name}": value for name, value in added.items()}
    changes |= {f"limits-{at}-amount": 7, "limits-TOTAL_FORMS": new + 1}
    answer = desk.client.post(address, form_of(free, **changes))
    assert answer.status_code == 302
    plan = plan_of(alice)
    assert plan is not None
    included = plan.included
    assert (included["monthly_evolutions"], included["monthly_usd"]) == (Decimal(7), Decimal(3))
    assert "7 evolutions" in str(AuditEntry.objects.get(action="set_plan").detail["limits"])


def test_a_limit_that_nothing_enforces_is_refused(
    desk: AdminClient, plans: dict[str, Plan]
) -> None:
    free = plans["free"]
    address = reverse("admin:billing_plan_change", args=[free.pk])
    at = [row.unit for row in free.limits.all()].index("evolutions")
    answer = desk.client.post(address, form_of(free, **{f"limits-{at}-window": "hour"}))
    assert "cannot be limited in this way" in answer.content.decode()


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


def test_who_may_only_look_has_nothing_read_again_and_makes_no_plan_everybodys(
    desk: AdminClient, plans: dict[str, Plan], alice: User, staff: User
) -> None:
    subscribe(alice, "pro")
    User.objects.filter(pk=staff.pk).update(is_superuser=False)
    rows = Permission.objects.filter(content_type__app_label="billing", codename__startswith="view")
    staff.user_permissions.set(rows)
    for name in ("plan", "billingaccount"):
        assert 'name="action"' not in desk.rows(f"billing_{name}")


def test_a_plan_is_given_without_payment_until_a_date_and_withdrawn(
    desk: AdminClient, plans: dict[str, Plan], alice: User
) -> None:
    address = reverse("admin:billing_billingaccount_add")
    fields = {"user": str(alice.pk), "complimentary_plan": str(plans["scale"].pk)}
    fields |= {"complimentary_until_0": "2030-01-31", "complimentary_until_1": "12:00:00"}
    assert desk.client.post(address, fields).status_code == 302
    assert plan_of(alice) == plans["scale"]
    BillingAccount.objects.update(complimentary_until=database_now())
    assert plan_of(alice) == plans["free"]
    desk.act("withdraw", BillingAccount.objects.get())
    assert "no complimentary plan" in desk.act("withdraw", BillingAccount.objects.get())
    actions = AuditEntry.objects.filter(owner_id=alice.pk).values_list("action", flat=True)
    assert set(actions) == {"grant_plan", "withdraw_plan"}


def test_a_given_plan_applies_while_no_paid_one_does(
    desk: AdminClient, plans: dict[str, Plan], alice: User
) -> None:
    account = subscribe(alice, "pro", stripe_subscription_id="sub_1")
    address = reverse("admin:billing_billingaccount_change", args=[account.pk])
    fields = {"complimentary_plan": str(plans["scale"].pk)}
    assert desk.client.post(address, fields).status_code == 302
    assert plan_of(alice) == plans["pro"]
    BillingAccount.objects.update(status="canceled")
    assert plan_of(alice) == plans["scale"]


def test_somebody_whose_payment_failed_is_found(
    desk: AdminClient, plans: dict[str, Plan], alice: User, charlie: User
) -> None:
    subscribe(alice, "pro", status="past_due")
    subscribe(charlie, "pro")
    page = desk.rows("billing_billingaccount", status__exact="past_due")
    assert alice.email in page
    assert charlie.email not in page


def test_no_menu_shows_the_lists_of_plans_while_billing_is_off(
    desk: AdminClient, settings: Settings
) -> None:
    for is_on in (True, False):
        settings.BILLING_ENABLED = is_on
        menu = desk.client.get("/admin/").content.decode()
        assert [f'href="/admin/billing/{name}/"' in menu for name in LISTS] == [is_on] * 3


def test_accounts_are_exported(desk: AdminClient, alice: User, plans: object) -> None:
    grant_plan(user=alice, plan=Plan.objects.get(slug="pro"), by=_staff())
    assert len(desk.export("billing_billingaccount")) == 2


def _staff() -> Principal:
    return Principal.of(User.objects.get(is_staff=True))
