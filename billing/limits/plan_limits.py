"""Plan limits on the number of playbooks and API keys, checked when one is created.

Existing ones keep working, also above the limit of a smaller plan.
"""

from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from accounts.models import ApiKey, User
from billing.models import Plan
from billing.plans.entitlements import format_count, plan_of
from core.errors import Conflict, NotFound

STORED_PER_ACTIVE = 10


class PlanLimitReached(Conflict):
    """The plan allows no more; the message says which plan, how many, and what to do."""

    code = "plan_limit"


def check_playbook_limit(*, user: User, active: QuerySet[Any]) -> None:
    """Raise PlanLimitReached when the plan allows no more playbooks than the `active` ones."""
    plan = plan_of(user)
    if plan is not None and plan.max_playbooks is not None:
        _check_limit(user, plan, plan.max_playbooks, active, "playbook", "Archive one")


class StorageLimitReached(Conflict):
    """The account stores as much as it may, archived playbooks and old versions included."""

    code = "storage_limit"


def check_storage_limits(*, user: User, playbooks: int, versions: int, size: int) -> None:
    """Raise StorageLimitReached for more than the settings allow; `size` is in bytes.

    Of playbooks a plan allows ten stored ones for each active one.
    """
    plan, limits = plan_of(user), [settings.MAX_STORED_PLAYBOOKS]
    if plan is not None and plan.max_playbooks is not None:
        limits.append(STORED_PER_ACTIVE * plan.max_playbooks)
    most = min(filter(None, limits), default=0)
    for what, have, limit in (
        ("playbooks", playbooks, most),
        ("versions", versions, settings.MAX_STORED_VERSIONS),
        ("MB of versions", size // 1_000_000, settings.MAX_STORED_MB),
    ):
        if limit and have > limit:
            raise StorageLimitReached(
                f"This account can store {limit:,} {what}, archived playbooks included. Ask the "
                "operator for more."
            )


def check_key_limit(*, user: User) -> None:
    """Raise PlanLimitReached when the plan allows no more API keys than those in use.

    Accounts, which know no plans, call this as `hooks.check_api_key_limit`.
    """
    plan = plan_of(user)
    if plan is not None and plan.max_keys is not None:
        in_use = ApiKey.objects.counted_for(user)
        _check_limit(user, plan, plan.max_keys, in_use, "API key", "Revoke one")


def _check_limit(
    user: User, plan: Plan, limit: int, rows: QuerySet[Any], what: str, otherwise: str
) -> None:
    # Lock the user: two requests at once would both count before either has inserted.
    if not User.objects.select_for_update(of=("self",), no_key=True).filter(pk=user.pk).first():
        raise NotFound("account")  # deleted meanwhile
    have = rows.count()
    if have >= limit:
        raise PlanLimitReached(
            f"The {plan.name} plan allows {format_count(limit, what)}, and you have {have:,}. "
            f"{otherwise}, or upgrade your plan."
        )
