"""Limits on playbooks, API keys and storage, checked when one is created, and on reports.

Existing ones keep working, also above the limit of a smaller plan.
"""

import time
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet

from accounts.models import ApiKey, User
from billing.models import Limit
from billing.plans.entitlements import account_amount, account_limits, format_count, plan_of
from core.errors import Conflict, NotFound

KNOWN_SECONDS = 30


class PlanLimitReached(Conflict):
    """The plan allows no more; the message says which plan, how many, and what to do."""

    code = "plan_limit"


class StorageLimitReached(Conflict):
    """The account stores as much as it may, archived playbooks and old versions included."""

    code = "storage_limit"


def check_playbook_limit(*, user: User, active: QuerySet[Any]) -> None:
    """Raise PlanLimitReached when the plan allows no more playbooks than the `active` ones."""
    _check_count(user, Limit.Unit.PLAYBOOKS, active, "playbook", "Archive one")


def check_key_limit(*, user: User) -> None:
    """Raise PlanLimitReached when the plan allows no more API keys than those in use.

    Accounts, which know no plans, call this as `hooks.check_api_key_limit`.
    """
    _check_count(user, Limit.Unit.KEYS, ApiKey.objects.counted_for(user), "API key", "Revoke one")


def _check_count(
    user: User, unit: Limit.Unit, rows: QuerySet[Any], what: str, otherwise: str
) -> None:
    limit = account_amount(account_limits(user), unit, Limit.Window.ANY)
    if limit is None:
        return
    # Lock the user: two requests at once would both count before either has inserted.
    if not User.objects.select_for_update(of=("self",), no_key=True).filter(pk=user.pk).first():
        raise NotFound("account")  # deleted meanwhile
    have, plan = rows.count(), plan_of(user)
    if have >= limit:
        raise PlanLimitReached(
            f"{f'The {plan.name} plan' if plan else 'This server'} allows "
            f"{format_count(int(limit), what)}, and you have {have:,}. "
            f"{otherwise}, or {'upgrade your plan' if plan else 'ask the operator for more'}."
        )


def check_storage_limits(*, user: User, playbooks: int, versions: int, size: int) -> None:
    """Raise StorageLimitReached for more than the account may store; `size` is in bytes."""
    limits, units = account_limits(user), Limit.Unit
    for what, have, unit in (
        ("playbooks", playbooks, units.STORED_PLAYBOOKS),
        ("versions", versions, units.STORED_VERSIONS),
        ("MB of versions", (size or 0) // 1_000_000, units.STORED_MB),
    ):
        limit = account_amount(limits, unit, Limit.Window.ANY)
        if limit is not None and (have or 0) > limit:
            raise StorageLimitReached(
                f"This account can store {limit:,.0f} {what}, archived playbooks included. Ask the "
                "operator for more."
            )


def report_rate(user: User) -> str:
    """How many reports of the user may start evolutions, as a rate; what is over it waits.

    A changed limit counts within half a minute: a report must not cost another query for it.
    """
    limit = _report_limit(user.pk, int(time.monotonic() // KNOWN_SECONDS))
    default: str = settings.RATE_LIMITS["report_outcome"]
    return default if limit is None else f"{limit:.0f}/h"


@lru_cache(maxsize=10_000)
def _report_limit(user_id: UUID, _half_minute: int) -> Decimal | None:
    limits = account_limits(User(pk=user_id))
    return account_amount(limits, Limit.Unit.REPORTS, Limit.Window.HOUR)
