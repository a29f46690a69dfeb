"""What a plan lets exist at one time: asked in the transaction that makes something new.

What exists already stays and works, also above the limit of a smaller plan.
"""

from typing import Any

from django.db.models import QuerySet

from accounts.models import ApiKey, User
from billing.models import Plan
from billing.plans.entitlements import format_count, plan_of
from core.errors import Conflict, NotFound

"""For so long after a plan was left its traces are not blanked for a smaller one."""


class PlanLimitReached(Conflict):
    """The plan allows no more of them; the sentence says which plan, how many, what to do."""

    code = "plan_limit"


def check_playbook_limit(*, user: User, active: QuerySet[Any]) -> None:
    """Raise PlanLimitReached when the user's plan allows no more playbooks than these `active` ones."""
    plan = plan_of(user)
    if plan is not None and plan.max_playbooks is not None:
        _check_limit(user, plan, plan.max_playbooks, active, "playbook", "Archive one")


def check_key_limit(*, user: User) -> None:
    """Raise PlanLimitReached when the user's plan allows no more API keys than they have in use.

    Accounts, which know no plans, call this as `hooks.check_api_key_limit`.
    """
    plan = plan_of(user)
    if plan is not None and plan.max_keys is not None:
        in_use = ApiKey.objects.counted_for(user)
        _check_limit(user, plan, plan.max_keys, in_use, "API key", "Revoke one")


def _check_limit(
    user: User, plan: Plan, limit: int, rows: QuerySet[Any], what: str, otherwise: str
) -> None:
    # Two at once would both count before either is there: the user's row makes them queue.
    if not User.objects.select_for_update(of=("self",), no_key=True).filter(pk=user.pk).first():
        raise NotFound("account")  # deleted meanwhile
    have = rows.count()
    if have >= limit:
        raise PlanLimitReached(
            f"The {plan.name} plan allows {format_count(limit, what)}, and you have {have:,}. "
            f"{otherwise}, or change to a larger plan."
        )
