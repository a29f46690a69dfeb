"""May an LLM call be made? Cost caps, budgets and the owner's plan decide.

One decision, read by `evolution.worker.llm_admission` before a call, and by the sweep for waiting
jobs.
"""

from datetime import datetime
from decimal import Decimal
from typing import Any

from billing.limits import quota
from billing.limits.spending import COST_CAP, Spender, SpendLimitReached, check_spend_limits
from billing.models import UsageRecord
from billing.plans.entitlements import entitlement_for
from billing.usage.metering import begin_usage

ROOM = Decimal("0.10")
"""US dollars that must be free below a limit before a job without a known cost tries again."""
LIMITS = {COST_CAP, *quota.CODES}
"""The codes of LimitReached: why a job waits for money."""


def begin_call(
    spender: Spender, *, want: Decimal, tokens: int | None, now: datetime, **usage: Any
) -> UsageRecord:
    """Record a call that is about to be made, with what it reserves of the owner's plan.

    `want`: its maximum cost in US dollars. `tokens` is None where no plan counts them. `usage`:
    further arguments of begin_usage. Raises LimitReached: the caller's transaction rolls back.
    """
    check_spend_limits(spender, want=want, now=now)
    entitlement = None if tokens is None else entitlement_for(spender.user_id, now=now)
    period = entitlement and quota.open_quota_period(spender.user_id, entitlement.period)
    record = begin_usage(
        user_id=spender.user_id,
        playbook_id=spender.playbook_id,
        credential=spender.credential,
        own_key=spender.own_key,
        held_usd=want,
        held_tokens=(tokens or 0) if period else 0,
        quota_period_id=period and period.pk,
        **usage,
    )
    if entitlement is not None:
        quota.check_call_quota(record, entitlement)
    return record


def has_quota(
    spender: Spender, *, code: str, mark: str, want: Decimal | None, now: datetime
) -> bool:
    """Whether a job that waits because of this LimitReached should try again."""
    if code != COST_CAP:
        resource = quota.CODES[code]
        if resource != quota.EVOLUTIONS and spender.own_key:
            return True
        return quota.has_quota(user_id=spender.user_id, resource=resource, mark=mark)
    if mark != spender.credential:
        return True
    try:
        check_spend_limits(spender, want=ROOM if want is None else want, now=now)
    except SpendLimitReached:
        return False
    return True
