"""Monthly plan quota: reserved before work begins, settled when it has ended.

One conditional UPDATE decides, so that concurrent requests never exceed the limit. A reservation is
a QuotaHold; whoever deletes it moves its amount from held to used in the same transaction, so it
counts once or not at all.
"""

import hashlib
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils.crypto import salted_hmac

from accounts.models import User
from billing.errors import LimitReached
from billing.limits.quota_notices import record_refusal_notice, record_usage_notice
from billing.models import DeletedAccountUsage, QuotaHold, QuotaPeriod, QuotaResource
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
    QuotaResource.EVOLUTIONS: "none is left",
    QuotaResource.TOKENS: "too few are left for the next model call",
}
ALTERNATIVE_TEXTS = {
    QuotaResource.EVOLUTIONS: "",
    QuotaResource.TOKENS: ", or use your own model key",
}
CODES = {f"quota_{resource.value}": resource for resource in QuotaResource}
SPARE = timedelta(minutes=2)
"""A hold outlives its work by this long; one left after that belongs to a dead process."""


class QuotaExceeded(LimitReached):
    """The plan's monthly quota is used up or reserved; `mark` changes with period and limit."""

    def __init__(
        self, entitlement: Entitlement, resource: QuotaResource, limit: int, *, is_busy: bool
    ) -> None:
        plan, self.until = entitlement.plan, entitlement.period.end
        left = "the rest is reserved for running jobs" if is_busy else EXHAUSTED_TEXTS[resource]
        included = format_count(limit, resource.removesuffix("s"))
        super().__init__(
            f"The {plan.name} plan includes {included} a month, and {left}. "
            f"Evolutions resume on {self.until:%-d %B %Y, %H:%M} UTC, "
            f"or as soon as you upgrade your plan{ALTERNATIVE_TEXTS[resource]}."
        )
        self.entitlement, self.resource, self.limit = entitlement, resource, limit
        self.code, self.mark = f"quota_{resource.value}", _state_digest(entitlement, resource)
        self.is_busy = is_busy


def reserve_quota(
    *, user_id: UUID, resource: QuotaResource, amount: int, holder_id: UUID, lifetime: timedelta
) -> bool:
    """Reserve `amount` for a job or call; False, and nothing written, when no plan applies.

    `lifetime`: how long the holder can run. Called inside the transaction that starts it. Raises
    QuotaExceeded.
    """
    entitlement = entitlement_for(user_id)
    if entitlement is None:
        return False
    limit = monthly_limit(entitlement, resource)
    period = open_quota_period(user_id, entitlement.period)
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
    """Count the reservation of the holder as `actual`; returns its period, None without one.

    Also while billing is off: what was reserved has to be settled.
    """
    hold = QuotaHold.objects.filter(resource=resource, holder_id=holder_id).first()
    return hold.period_id if hold is not None and _settle(hold, actual) else None


def correct_quota_use(period_id: UUID, *, resource: QuotaResource, more: int) -> None:
    """Correct an estimated usage by `more` tokens, which may be negative."""
    used = f"{resource}_used"
    QuotaPeriod.objects.filter(pk=period_id).update(**{used: F(used) + more})


def release_quota(*, resource: QuotaResource, holder_id: UUID) -> None:
    """Remove the reservation of the holder; nothing counts."""
    settle_quota(resource=resource, holder_id=holder_id, actual=0)


def release_stale_holds(now: datetime) -> int:
    """Release the holds of dead processes; returns how many."""
    stale = QuotaHold.objects.filter(expires_at__lt=now)
    return sum(_settle(hold, 0) for hold in list(stale[:BATCH_SIZE]))


def release_hold(*, hold: QuotaHold, by: Principal) -> None:
    """Release a hold by hand. Raises Conflict (`settled`) when it is settled already."""
    with transaction.atomic():
        owner_id = hold.period.user_id
        if not _settle(hold, 0):
            raise Conflict("This reservation is settled already.", code="settled")
        record(action="release_hold", by=by, subject=hold, owner=owner_id, amount=hold.amount)


def has_quota(*, user_id: UUID, resource: QuotaResource, mark: str) -> bool:
    """Whether a job that waits under `mark` should try again: new plan, new period, or room."""
    entitlement = entitlement_for(user_id)
    if entitlement is None or mark != _state_digest(entitlement, resource):
        return True
    if resource == QuotaResource.TOKENS:
        # Used tokens only grow within a period, so there is no more room than before.
        return False
    limit = monthly_limit(entitlement, resource)
    period = find_quota_period(user_id, entitlement.period)
    if limit is None or period is None:
        return True
    taken: int = getattr(period, f"{resource}_used") + getattr(period, f"{resource}_held")
    return taken < limit


def open_quota_period(user_id: UUID, period: BillingPeriod) -> QuotaPeriod:
    """The row of this period, created at its first use; its end follows the period's."""
    row, created = QuotaPeriod.objects.get_or_create(
        user_id=user_id, start=period.start, defaults={"end": period.end}
    )
    if created:
        _count_deleted_account(row)
    if row.end != period.end:
        QuotaPeriod.objects.filter(pk=row.pk).update(end=period.end)
    return row


def keep_used_quota(*, user: User) -> None:
    """Before the account is deleted, keep what it used of this period under a keyed digest.

    Old rows go at the same time.
    """
    DeletedAccountUsage.objects.filter(end__lt=database_now()).delete()
    period = QuotaPeriod.objects.filter(user=user, end__gt=database_now()).first()
    if period is not None:
        DeletedAccountUsage.objects.update_or_create(
            email_digest=_email_digest(user),
            defaults={
                "end": period.end,
                "evolutions_used": period.evolutions_used + period.evolutions_held,
                "tokens_used": period.tokens_used + period.tokens_held,
            },
        )


def _count_deleted_account(period: QuotaPeriod) -> None:
    """Count what a deleted account of the same address used since this period began."""
    earlier = DeletedAccountUsage.objects.filter(
        email_digest=_email_digest(period.user), end__gt=period.start, end__lte=period.end
    ).first()
    if earlier is not None:
        QuotaPeriod.objects.filter(pk=period.pk).update(
            evolutions_used=F("evolutions_used") + earlier.evolutions_used,
            tokens_used=F("tokens_used") + earlier.tokens_used,
        )


def _email_digest(user: User) -> str:
    return salted_hmac("billing.deleted", user.email, algorithm="sha256").hexdigest()


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
    """Queue the notice that a job had to wait for quota, once for each period and limit."""
    if isinstance(reached, QuotaExceeded) and not reached.is_busy:
        period = open_quota_period(user_id, reached.entitlement.period)
        record_refusal_notice(period, resource=reached.resource, limit=reached.limit)


def _state_digest(entitlement: Entitlement, resource: QuotaResource) -> str:
    parts = (resource, entitlement.period.start.isoformat(), monthly_limit(entitlement, resource))
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()
