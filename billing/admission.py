"""Whether money allows a call of a model: the operator's caps, budgets and the owner's plan.

One decision, asked by `evolution.worker.llm_admission` as a call begins, and by the sweep for what waits.
"""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from billing.limits import quota
from billing.limits.cost_caps import COST_CAP, Spender, SpendLimitReached, check_spend_limits
from billing.models import QuotaResource, UsageRecord
from billing.usage.metering import begin_usage

ROOM = Decimal("0.10")
"""US dollars: the room below a limit for what waits without saying how much it needs."""
LIMITS = {COST_CAP, *quota.CODES}
"""Why work waits for money: the codes of LimitReached."""


def begin_call(
    spender: Spender,
    *,
    want: Decimal,
    tokens: int | None,
    lifetime: timedelta,
    now: datetime,
    **usage: Any,
) -> tuple[UsageRecord, bool]:
    """The call is on record, and whether its owner's plan holds `tokens` for it.

    `want`: the most that it can cost, in US dollars. `tokens` is None where no plan counts them.
    `usage`: what else begin_usage is told. Raises LimitReached.
    """
    check_spend_limits(spender, want=want, now=now)
    # The ledger, and with it the day's sum, before the plan's period: as where a call ends.
    record = begin_usage(
        user_id=spender.user_id,
        playbook_id=spender.playbook_id,
        credential=spender.credential,
        held_usd=want,
        **usage,
    )
    holds = tokens is not None and quota.reserve_quota(
        user_id=spender.user_id,
        resource=QuotaResource.TOKENS,
        amount=tokens,
        holder_id=record.pk,
        lifetime=lifetime,
    )
    return record, holds


def has_quota(
    spender: Spender, *, code: str, mark: str, want: Decimal | None, now: datetime
) -> bool:
    """Whether what waits for the limit of this LimitReached should try again."""
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
