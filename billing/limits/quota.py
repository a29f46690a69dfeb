"""How much of a plan's month is left: reserved before work begins, settled when it has ended.

One conditional UPDATE decides, so that as many get through as fit however many ask at once. What
is reserved is a QuotaHold; whoever deletes it moves its amount from held to used, in the same
transaction: it counts once, or not at all.
"""

import hashlib
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F

from billing.errors import LimitReached
from billing.limits.quota_notices import record_refusal_notice, record_usage_notice
from billing.models import QuotaHold, QuotaPeriod, QuotaResource
from billing.plans.billing_periods import BillingPeriod
from billing.plans.entitlements import (
    Entitlement,
    entitlement_for,
    find_quota_period,
    format_count,
    monthly_limit,
)
from core.audit import record
from core.clock import database_now
from core.errors import Conflict
from core.security.scopes import Principal

BATCH_SIZE = 200
EXHAUSTED_TEXTS = {
    QuotaResource.EVOLUTIONS: "no evolution is left",
    QuotaResource.TOKENS: "too few are left for the next call of a model",
}
ALTERNATIVE_TEXTS = {
    QuotaResource.EVOLUTIONS: "",
    QuotaResource.TOKENS: ", or use a model key of your own",
}


CODES = {f"quota_{resource.value}": resource for resource in QuotaResource}
SPARE = timedelta(minutes=2)
"""A hold outlives by so much what it is held for: only a dead process leaves it behind."""


class QuotaExceeded(LimitReached):
    """The plan leaves no room for this, or only once another plan applies.

    Its `mark` changes with the period and the limit.
    """

    def __init__(
        self, entitlement: Entitlement, resource: QuotaResource, limit: int, *, is_busy: bool
    ) -> None:
        plan, self.until = entitlement.plan, entitlement.span.end
        left = "what is left is held for work under way" if is_busy else EXHAUSTED_TEXTS[resource]
        included = format_count(limit, resource.removesuffix("s"))
        super().__init__(
            f"The {plan.name} plan includes {included} a month, and {left}. "
            f"What waits goes on by itself on {self.until:%-d %B %Y, %H:%M} UTC, "
            f"or as soon as you change to a larger plan{ALTERNATIVE_TEXTS[resource]}."
        )
        self.entitlement, self.resource, self.limit = entitlement, resource, limit
        self.code, self.mark = f"quota_{resource.value}", _state_digest(entitlement, resource)
        self.is_busy = is_busy


def reserve_quota(
    *, user_id: UUID, resource: QuotaResource, amount: int, holder_id: UUID, lifetime: timedelta
) -> bool:
    """`amount` is held for the holder; False when no plan applies, and nothing is written.

    `lifetime`: how long the holder can live. Called inside the transaction of what begins.
    Raises QuotaExceeded.
    """
    entitlement = entitlement_for(user_id)
    if entitlement is None:
        return False
    limit, period = (
        monthly_limit(entitlement, resource),
        open_quota_period(user_id, entitlement.span),
    )
    if not _hold(period, resource, amount, limit):
        used = _used(period.pk, resource)
        is_busy = limit is not None and used + amount <= limit
        raise QuotaExceeded(entitlement, resource, limit or 0, is_busy=is_busy)
    QuotaHold.objects.create(
        period=period,
        resource=resource,
        holder_id=holder_id,
        amount=amount,
        limit=limit,
        expires_at=database_now() + lifetime + SPARE,
    )
    return True


def settle_quota(*, resource: QuotaResource, holder_id: UUID, actual: int) -> UUID | None:
    """What was held for the holder counts as `actual`: in the period that is the answer.

    Without a hold nothing changes. Asked whether billing is on or not: what was reserved has to
    end.
    """
    hold = QuotaHold.objects.filter(resource=resource, holder_id=holder_id).first()
    return hold.period_id if hold is not None and _settle(hold, actual) else None


def correct_quota_use(period_id: UUID, *, resource: QuotaResource, more: int) -> None:
    """What was counted as an estimate is what it really was: so much more, or less."""
    used = f"{resource}_used"
    QuotaPeriod.objects.filter(pk=period_id).update(**{used: F(used) + more})


def release_quota(*, resource: QuotaResource, holder_id: UUID) -> None:
    """Nothing is held for the holder any more, and nothing counts."""
    settle_quota(resource=resource, holder_id=holder_id, actual=0)


def release_stale_holds(now: datetime) -> int:
    """What was held for a process that died is free again; returns how many holds."""
    stale = QuotaHold.objects.filter(expires_at__lt=now)
    return sum(_settle(hold, 0) for hold in list(stale[:BATCH_SIZE]))


def release_hold(*, hold: QuotaHold, by: Principal) -> None:
    """A person gives back what is held. Raises Conflict (`settled`) when it has ended already."""
    with transaction.atomic():
        owner_id = hold.period.user_id
        if not _settle(hold, 0):
            raise Conflict("What was held has ended already.", code="settled")
        record(action="release_hold", by=by, subject=hold, owner=owner_id, amount=hold.amount)


def has_quota(*, user_id: UUID, resource: QuotaResource, mark: str) -> bool:
    """Whether what waits under `mark` should try again: another plan or period, or room came."""
    entitlement = entitlement_for(user_id)
    if entitlement is None or mark != _state_digest(entitlement, resource):
        return True
    if resource == QuotaResource.TOKENS:
        # Used tokens only grow within a period: what was too little stays too little.
        return False
    limit, period = (
        monthly_limit(entitlement, resource),
        find_quota_period(user_id, entitlement.span),
    )
    return limit is None or period is None or used_and_held(period, resource) < limit


def used_and_held(period: QuotaPeriod, resource: QuotaResource) -> int:
    total: int = getattr(period, f"{resource}_used") + getattr(period, f"{resource}_held")
    return total


def open_quota_period(user_id: UUID, span: BillingPeriod) -> QuotaPeriod:
    """The row of this span, made when it is the first use; its end follows the span's."""
    period, _ = QuotaPeriod.objects.get_or_create(
        user_id=user_id, start=span.start, defaults={"end": span.end}
    )
    if period.end != span.end:
        QuotaPeriod.objects.filter(pk=period.pk).update(end=span.end)
    return period


def _hold(period: QuotaPeriod, resource: QuotaResource, amount: int, limit: int | None) -> bool:
    used, held = F(f"{resource}_used"), F(f"{resource}_held")
    rows = QuotaPeriod.objects.filter(pk=period.pk)
    if limit is not None:
        rows = rows.alias(taken=used + held).filter(taken__lte=limit - amount)
    return rows.update(**{f"{resource}_held": held + amount}) == 1


def _settle(hold: QuotaHold, actual: int) -> int:
    used, held = f"{hold.resource}_used", f"{hold.resource}_held"
    with transaction.atomic():
        if not QuotaHold.objects.filter(pk=hold.pk).delete()[0]:
            return 0
        rows = QuotaPeriod.objects.filter(pk=hold.period_id)
        rows.update(**{held: F(held) - hold.amount, used: F(used) + actual})
        if actual and hold.limit is not None:
            record_usage_notice(hold, used=_used(hold.period_id, hold.resource))
    return 1


def _used(period_id: UUID, resource: str) -> int:
    rows = QuotaPeriod.objects.filter(pk=period_id)
    used: int = rows.values_list(f"{resource}_used", flat=True).get()
    return used


def record_quota_exceeded(reached: LimitReached, *, user_id: UUID) -> None:
    """Somebody was refused for want of quota: a notice says so, once."""
    if isinstance(reached, QuotaExceeded) and not reached.is_busy:
        period = open_quota_period(user_id, reached.entitlement.span)
        record_refusal_notice(period, resource=reached.resource, limit=reached.limit)


def _state_digest(entitlement: Entitlement, resource: QuotaResource) -> str:
    parts = (resource, entitlement.span.start.isoformat(), monthly_limit(entitlement, resource))
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()
