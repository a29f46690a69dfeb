"""The plan that applies to a user at this moment, and its limits; no plan while billing is off."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, UUIDField

from accounts.models import User
from billing.models import BillingAccount, Limit, Plan, QuotaPeriod, QuotaResource
from billing.plans.billing_periods import BillingPeriod, billing_period_at
from core.audit import record
from core.clock import database_now
from core.errors import Conflict
from core.security.scopes import Principal
from core.sql.compiled_queries import CompiledQuery, Param

SHORTEST_MONTH = timedelta(days=28)
OWN = (Limit.SetBy.OPERATOR, Limit.SetBy.PLAN)


@dataclass(frozen=True)
class Entitlement:
    """The plan that applies, its limits, and the period over which the monthly ones count.

    `account` is a new one, not saved, for users who only ever had the default plan. Its own plan
    may differ from `plan`: after the grace of a failed payment the default plan applies.
    """

    plan: Plan
    period: BillingPeriod
    account: BillingAccount
    limits: list[Limit]
    is_trial: bool = False


def plan_of(user: User) -> Plan | None:
    """The plan that applies to the user; None while billing is off."""
    if not settings.BILLING_ENABLED:
        return None
    return _plan_at(database_now(), user.pk)[0]


def entitlement_for(user_id: UUID, *, now: datetime | None = None) -> Entitlement | None:
    """The user's plan and period, after any grace, now or at `now`; None while billing is off."""
    if not settings.BILLING_ENABLED:
        return None
    now = now or database_now()
    plan, account = _plan_at(now, user_id)
    limits = find_limits(user_id=user_id, plan_id=plan.pk)
    if not account.is_entitled(now):
        return Entitlement(plan, billing_period_at(now), account, limits)
    is_trial = account.status == BillingAccount.Status.TRIALING
    start, end = account.period_start, account.period_end
    # A price by the week pays for a week of the month that the plan's limits are for.
    if start and end and not is_trial and end - start < SHORTEST_MONTH:
        start = end = None
    return Entitlement(plan, billing_period_at(now, start, end), account, limits, is_trial)


def keep_until(user_id: UUID, now: datetime) -> datetime | None:
    """Until when the user's plan keeps a text written now; None: the server's setting decides.

    The text stores it, so that no later change of plan or retention deletes it sooner.
    """
    entitlement = entitlement_for(user_id, now=now)
    days = entitlement.plan.retention_days if entitlement else None
    return None if days is None else now + timedelta(days=days)


def _plan_at(now: datetime, user_id: UUID) -> tuple[Plan, BillingAccount]:
    """The plan that applies, and the user's account, a new one if there is none."""
    rows = BillingAccount.objects.select_related("plan", "complimentary_plan")
    account = rows.filter(user=user_id).first() or BillingAccount(user_id=user_id)
    # A migration brings the default plan, and nobody can delete it.
    return account.own_plan(now) or Plan.objects.get(is_default=True), account


def grant_plan(
    *, user: User, plan: Plan, by: Principal, until: datetime | None = None
) -> BillingAccount:
    """Give the user a plan without payment, until a date or until it is withdrawn.

    It applies whenever no paid plan does.
    """
    with transaction.atomic():
        BillingAccount.objects.get_or_create(user=user)
        account = BillingAccount.objects.select_for_update(of=("self",)).get(user=user)
        account.complimentary_plan, account.complimentary_until = plan, until
        account.save(update_fields=["complimentary_plan", "complimentary_until", "updated_at"])
        ends = until.isoformat() if until else None
        record(action="grant_plan", by=by, subject=account, owner=user, plan=plan.slug, until=ends)
    return account


def withdraw_plan(*, account: BillingAccount, by: Principal) -> BillingAccount:
    """Take the given plan back. Raises Conflict (`nothing_given`) without one."""
    with transaction.atomic():
        account = BillingAccount.objects.select_for_update(of=("self",)).get(pk=account.pk)
        if account.complimentary_plan_id is None:
            raise Conflict(
                "This user has no complimentary plan. Change a subscription in Stripe: in the "
                "customer portal or in the Stripe dashboard.",
                code="nothing_given",
            )
        account.complimentary_plan = account.complimentary_until = None
        account.save(update_fields=["complimentary_plan", "complimentary_until", "updated_at"])
        record(action="withdraw_plan", by=by, subject=account, owner=account.user_id)
    return account


def make_default(*, plan: Plan, by: Principal) -> Plan:
    """Make the plan the default of all users without another one.

    Raises Conflict (`not_for_all`) for a paid or inactive plan.
    """
    if plan.price_lookup_key or not plan.is_active:
        raise Conflict("Only an active, free plan can be the default plan.", code="not_for_all")
    with transaction.atomic():
        Plan.objects.filter(is_default=True).exclude(pk=plan.pk).update(is_default=False)
        Plan.objects.filter(pk=plan.pk).update(is_default=True)
        record(action="make_default", by=by, subject=plan, slug=plan.slug)
    plan.refresh_from_db()
    return plan


def account_limits(user: User) -> list[Limit]:
    """The limits of the user's account, with those of its plan while billing is on."""
    plan = plan_of(user)
    return find_limits(user_id=user.pk, plan_id=plan.pk if plan else None)


def find_limits(
    *, user_id: UUID, playbook_id: UUID | None = None, plan_id: UUID | None = None
) -> list[Limit]:
    """The limits of this account, of one of its playbooks, of its plan and of all accounts."""
    found = LIMITS_QUERY.all(user=user_id, playbook=playbook_id, plan=plan_id)
    if not any(row.until for row in found):
        return found
    now = database_now()
    return [row for row in found if row.until is None or row.until > now]


def limit_of_account(
    rows: Iterable[Limit], unit: str, window: str, set_by: Collection[str] = OWN
) -> Limit | None:
    """The row that limits the account: one of its own, else its plan's, else the one for all."""
    fitting = (
        row
        for row in rows
        if (row.scope, row.unit, row.window) == (Limit.Scope.ACCOUNT, unit, window)
        and row.set_by in set_by
    )
    return min(fitting, key=lambda row: (row.user_id is None, row.plan_id is None), default=None)


def account_amount(rows: Iterable[Limit], unit: str, window: str) -> Decimal | None:
    """How much the account may use; None: no limit."""
    row = limit_of_account(rows, unit, window)
    return row.amount if row else None


USER, PLAYBOOK, PLAN = (Param(name, UUIDField()) for name in ("user", "playbook", "plan"))
# Without a playbook or plan its condition matches no row: in SQL, NULL equals nothing.
LIMITS_QUERY = CompiledQuery(
    lambda: Limit.objects.filter(
        Q(user=USER, playbook_id=None)
        | (Q(playbook_id=PLAYBOOK) & (Q(user=USER) | Q(user=None)))
        | Q(plan=PLAN)
        | Q(user=None, playbook_id=None, plan=None)
    )
)


def format_count(number: int, one: str) -> str:
    """A count with its noun: "1 playbook", "1,000 playbooks"."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def format_quota(limit: int, resource: QuotaResource) -> str:
    """A monthly limit in words: "1,000 tokens", "$5 of model calls"."""
    if resource == QuotaResource.USD:
        return f"${limit:,} of model calls"
    return format_count(limit, resource.removesuffix("s"))


def monthly_limit(entitlement: Entitlement, resource: QuotaResource) -> int | None:
    """How much of a resource a month allows; None: unlimited. With overage its owner's budget."""
    over = None if resource == QuotaResource.EVOLUTIONS else overage_limit(entitlement)
    if over is None:
        return included_amount(entitlement, resource)
    return over if resource == QuotaResource.USD else None


def overage_limit(entitlement: Entitlement) -> int | None:
    """The cost in US$ up to which a month's calls go on beyond the plan; None without overage."""
    is_on = entitlement.account.overage_subscription_id and not overage_problem(entitlement)
    return _overage_budget(entitlement.limits) if is_on else None


def overage_problem(entitlement: Entitlement) -> str:
    """What keeps the account from overage, for its owner; empty if nothing does."""
    plan, account = entitlement.plan, entitlement.account
    included = included_amount(entitlement, QuotaResource.USD)
    if included is None or not (account.overage_subscription_id or plan.overage_price):
        return f"The {plan.name} plan has no overage."
    if account.status != account.Status.ACTIVE or account.plan_id != plan.pk:
        return "Overage needs a paid plan, without a trial or an unpaid invoice."
    if _overage_budget(entitlement.limits) > included:
        return ""
    return f"Overage needs a monthly budget of more than ${included:,} that pauses evolutions."


def _overage_budget(rows: Iterable[Limit]) -> int:
    """Whole US$ of the owner's monthly budget for the account, if it stops calls; else 0."""
    row = limit_of_account(rows, Limit.Unit.USD, Limit.Window.MONTH, (Limit.SetBy.OWNER,))
    return int(row.amount or 0) if row and row.stops else 0


def included_amount(entitlement: Entitlement, resource: QuotaResource) -> int | None:
    """The plan's monthly limit of a resource; None: unlimited. A trial has a part of it.

    Cost in US dollars is a plan's only: other limits on it are the calendar's (`spending`).
    """
    row = limit_of_account(entitlement.limits, resource, Limit.Window.MONTH)
    if row is None or row.amount is None:
        return None
    if row.plan_id is None:
        return None if resource == QuotaResource.USD else int(row.amount)
    share = entitlement.plan.trial_percent if entitlement.is_trial else 100
    return int(row.amount * share / 100)


def find_quota_period(user_id: UUID, period: BillingPeriod) -> QuotaPeriod | None:
    """The row of this period; None while nothing was used in it."""
    return QuotaPeriod.objects.filter(user=user_id, start=period.start).first()
