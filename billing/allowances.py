"""What a plan lets exist at one time: asked in the transaction that makes something new.

What exists already stays and works, also above the limit of a smaller plan.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet

from accounts.errors import Conflict, NotFound
from accounts.models import ApiKey, User
from billing.models import BillingAccount, Plan
from billing.plan_rows import NOTICE
from billing.plans import default_plan, plan_of, so_many
from billing.switching import forget_plans, note_plans

LAPSED_KEEPS = timedelta(days=30)
"""For so long after a plan was left its traces are not blanked for a smaller one."""


class PlanLimit(Conflict):
    """The plan allows no more of them; the sentence says which plan, how many, what to do."""

    code = "plan_limit"


def refuse_more_playbooks(*, user: User, active: QuerySet[Any]) -> None:
    """Raise PlanLimit when the user's plan allows no more playbooks than these `active` ones."""
    plan = plan_of(user)
    if plan is not None and plan.max_playbooks is not None:
        _refuse(user, plan, plan.max_playbooks, active, "playbook", "Archive one")


def refuse_more_keys(*, user: User) -> None:
    """Raise PlanLimit when the user's plan allows no more API keys than they have in use.

    Accounts, which know no plans, call this by settings.KEY_ALLOWANCE.
    """
    plan = plan_of(user)
    if plan is not None and plan.max_keys is not None:
        in_use = ApiKey.objects.counted_for(user)
        _refuse(user, plan, plan.max_keys, in_use, "API key", "Revoke one")


def shorter_retention(now: datetime, than: int) -> Iterator[tuple[int, QuerySet[User]]]:
    """Days for which plans keep traces where that is less than `than` (0: for ever), and whose.

    None in the first days after billing was switched on: a switch alone deletes nothing. Nor do
    fewer days of a plan at once.
    """
    if not settings.BILLING_ENABLED:
        forget_plans()
    elif now >= note_plans(now).since + NOTICE:
        for plan, users in terms(now, than):
            days = plan.days_at(now)
            if days is not None and (not than or days < than):
                yield days, users


def terms(now: datetime, than: int) -> Iterator[tuple[Plan, QuerySet[User]]]:
    """The plans that keep traces for less, and whose they are, also before their time begins."""
    accounts = BillingAccount.objects.entitled(now)
    for plan in Plan.objects.filter(retention_days__isnull=False):
        if than and (plan.retention_days or 0) >= than:
            continue
        users = User.objects.filter(pk__in=accounts.filter(plan=plan).values("user"))
        if plan.pk == default_plan().pk:
            users |= User.objects.exclude(pk__in=accounts.values("user"))
        yield plan, users.exclude(pk__in=_just_lapsed(now).values("user"))


def _just_lapsed(now: datetime) -> QuerySet[BillingAccount]:
    """Accounts that left a plan a short while ago: they may well come back."""
    lately = now - LAPSED_KEEPS
    grace_over = Q(status="past_due", grace_until__gt=lately, grace_until__lte=now)
    return BillingAccount.objects.filter(grace_over | Q(plan_left_at__gt=lately))


def _refuse(
    user: User, plan: Plan, limit: int, rows: QuerySet[Any], what: str, otherwise: str
) -> None:
    # Two at once would both count before either is there: the user's row makes them queue.
    if not User.objects.select_for_update(of=("self",), no_key=True).filter(pk=user.pk).first():
        raise NotFound("account")  # deleted meanwhile
    have = rows.count()
    if have >= limit:
        raise PlanLimit(
            f"The {plan.name} plan allows {so_many(limit, what)}, and you have {have:,}. "
            f"{otherwise}, or change to a larger plan."
        )
