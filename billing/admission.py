"""May an LLM call be made? Cost caps, budgets and the owner's plan decide.

One decision, read by `evolution.worker.llm_admission` before a call, and by the sweep for waiting
jobs.
"""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from billing.limits import quota
from billing.limits.cost_caps import COST_CAP, Spender, SpendLimitReached, check_spend_limits
from billing.models import QuotaResource, UsageRecord
from billing.usage.metering import begin_usage

ROOM = Decimal("0.10")
"""US dollars that must be free below a limit before a job without a known cost tries again."""
LIMITS = {COST_CAP, *quota.CODES}
"""The codes of LimitReached: why a job waits for money."""


def begin_call(
    spender: Spender,
    *,
    want: Decimal,
    tokens: int | None,
    lifetime: timedelta,
    now: datetime,
    **usage: Any,
) -> tuple[UsageRecord, bool]:
    """Record a call that is about to be made; returns it, and whether `tokens` were reserved.

    `want`: its maximum cost in US dollars. `tokens` is None where no plan counts them. `usage`:
    further arguments of begin_usage. Raises LimitReached.
    """
    check_spend_limits(spender, want=want, now=now)
    # Usage record (and daily total) before the quota period: the lock order of finish_call.
    record = begin_usage(
        user_id=spender.user_id,
        playbook_id=spender.playbook_id,
        credential=spender.credential,
        held_usd=want,
        **usage,
    )
    is_reserved = tokens is not None and quota.reserve_quota(
        user_id=spender.user_id,
        resource=QuotaResource.TOKENS,
        amount=tokens,
        holder_id=record.pk,
        lifetime=lifetime,
    )
    return record, is_reserved


def has_quota(
    spender: Spender, *, code: str, mark: str, want: Decimal | None, now: datetime
) -> bool:
    """Whether a job that waits because of this LimitReached should try again."""
    if code != COST_CAP:
        resource = quota.CODES[code]
        if resource == QuotaResource.TOKENS and spender.own_key:
            return True
        return quota.has_quota(user_id=spender.user_id, resource=resource, mark=mark)
    if mark != spender.credential:
        return True
    try:
        check_spend_limits(spender, want=ROOM if want is None else want, now=now)
    except SpendLimitReached:
        return False
    return True
