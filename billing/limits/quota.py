"""Monthly plan quota: reserved before work begins, counted when it has ended, told by e-mail.

Tokens and US dollars are sums of the ledger: its trigger adds each call's reservation to the plan
month in the statement that records the call, and the sum is read in the same transaction. The
month's row is locked by then, so concurrent calls never exceed the quota. Evolutions are reserved
by one conditional UPDATE; the job names the month until it ends, so it counts once or not at all.
"""

import hashlib
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.core.cache import cache
from django.db.models import Exists, F, OuterRef, Q

from accounts.models import User
from billing.errors import LimitReached
from billing.models import (
    DailySpend,
    DeletedAccountUsage,
    OverageCharge,
    QuotaPeriod,
    QuotaResource,
    UsageRecord,
)
from billing.models.accounts import keyed_digest
from billing.plans.billing_periods import BillingPeriod
from billing.plans.entitlements import (
    Entitlement,
    entitlement_for,
    find_quota_period,
    format_quota,
    included_amount,
    monthly_limit,
    overage_limit,
)
from billing.plans.summary import quota_usages
from core.clock import database_now
from core.emails import send_email

EVOLUTIONS = QuotaResource.EVOLUTIONS
EXHAUSTED_TEXTS = {
    QuotaResource.EVOLUTIONS: "none are left",
    QuotaResource.TOKENS: "too few are left for the next model call",
    QuotaResource.USD: "too little is left for the next model call",
}
RECENT_USAGE = timedelta(minutes=15)
NOTICE_INTERVAL = 60
"""Seconds."""
CODES = {f"quota_{resource.value}": resource for resource in QuotaResource}


class QuotaExceeded(LimitReached):
    """The plan's monthly quota is used up or reserved; `mark` changes with period and limit."""

    def __init__(
        self, entitlement: Entitlement, resource: QuotaResource, limit: int, *, is_busy: bool
    ) -> None:
        plan, self.until = entitlement.plan, entitlement.period.end
        left = "the rest is reserved for running jobs" if is_busy else EXHAUSTED_TEXTS[resource]
        otherwise = "" if resource == EVOLUTIONS else ", or use your own model key"
        trial = " during the trial" if entitlement.is_trial else ""
        resume = f"Evolutions resume on {self.until:%-d %B %Y, %H:%M} UTC, or as soon as you"
        message = (
            f"The {plan.name} plan includes {format_quota(limit, resource)} a month{trial}, and "
            f"{left}. {resume} upgrade your plan{otherwise}."
        )
        if limit != included_amount(entitlement, resource):
            message = (
                f"With overage, your budget allows {format_quota(limit, resource)} a month, and "
                f"{left}. {resume} raise the budget{otherwise}."
            )
        super().__init__(message)
        self.entitlement, self.resource, self.limit = entitlement, resource, limit
        self.code, self.mark = f"quota_{resource.value}", _state_digest(entitlement, resource)
        self.is_busy = is_busy


def reserve_evolution(user_id: UUID) -> UUID | None:
    """Reserve one evolution of the user's plan; the id of the plan month, None without a plan.

    Called inside the transaction that starts the job. Raises QuotaExceeded.
    """
    entitlement = entitlement_for(user_id)
    if entitlement is None:
        return None
    limit = monthly_limit(entitlement, EVOLUTIONS)
    period = open_quota_period(user_id, entitlement.period)
    rows = QuotaPeriod.objects.filter(pk=period.pk)
    if limit is not None:
        rows = rows.alias(taken=F("evolutions_used") + F("evolutions_held")).filter(taken__lt=limit)
    if not rows.update(evolutions_held=F("evolutions_held") + 1):
        period.refresh_from_db()
        is_busy = limit is not None and period.evolutions_used < limit
        raise QuotaExceeded(entitlement, EVOLUTIONS, limit or 0, is_busy=is_busy)
    return period.pk


def settle_evolution(period_id: UUID, *, counts: bool) -> None:
    """Return the reservation of a job, which counts or not. Also while billing is off.

    The caller holds the job's lock and clears its period, so that it is settled once.
    """
    rows = QuotaPeriod.objects.filter(pk=period_id)
    rows.update(
        evolutions_held=F("evolutions_held") - 1,
        evolutions_used=F("evolutions_used") + int(counts),
        updated_at=database_now(),
    )


def check_call_quota(record: UsageRecord, entitlement: Entitlement) -> None:
    """Raise QuotaExceeded when the call just recorded exceeds its plan month; roll back then."""
    # Its row is locked: the ledger's trigger has just added the call.
    period = QuotaPeriod.objects.get(pk=str(record.quota_period_id))
    wanted = {QuotaResource.TOKENS: record.held_tokens, QuotaResource.USD: record.held_usd}
    for resource, want in wanted.items():
        limit, used = monthly_limit(entitlement, resource), getattr(period, f"{resource}_used")
        if resource == QuotaResource.TOKENS and not record.held_usd:
            # Nobody would pay for the overage of a call whose price is unknown.
            limit = included_amount(entitlement, resource)
        if limit is not None and used + getattr(period, f"{resource}_held") > limit:
            raise QuotaExceeded(entitlement, resource, limit, is_busy=used + want <= limit)
    _mark_overage(period, included_amount(entitlement, QuotaResource.USD))


def _mark_overage(period: QuotaPeriod, included: int | None) -> None:
    """Keep the cost above which the month's calls are charged: never what the plan included then.

    It only rises: by a larger plan, and by a limit that is no plan's.
    """
    taken, start = period.usd_used + period.usd_held, period.overage_from
    if start is None and (included is None or taken <= included):
        return
    above = taken if included is None else Decimal(included)
    start = max(above, period.usd_used if start is None else start)
    if start != period.overage_from:
        period.overage_from, period.overage_sent = start, period.overage_sent or 0
        period.save(update_fields=["overage_from", "overage_sent", "updated_at"])


def charge_overage(period_id: UUID) -> None:
    """Charge the whole cents used beyond the plan since the last time. In a transaction."""
    rows = QuotaPeriod.objects.select_for_update(of=("self",), no_key=True)
    period = rows.select_related("user__billing_account").filter(pk=period_id).first()
    cents = int(period.overage_usd * 100) - (period.overage_sent or 0) if period else 0
    customer = period.user.billing_account.stripe_customer_id if period else ""
    if period and customer and cents > 0:
        OverageCharge.objects.create(customer_id=customer, cents=cents)
        period.overage_sent = cents + (period.overage_sent or 0)
        period.save(update_fields=["overage_sent", "updated_at"])


def has_quota(*, user_id: UUID, resource: QuotaResource, mark: str) -> bool:
    """Whether a job that waits under `mark` should try again: new plan, new period, or room."""
    entitlement = entitlement_for(user_id)
    if entitlement is None or mark != _state_digest(entitlement, resource):
        return True
    if resource != EVOLUTIONS:
        # What is used only grows within a period, so there is no more room than before.
        return False
    limit = monthly_limit(entitlement, resource)
    period = find_quota_period(user_id, entitlement.period)
    if limit is None or period is None:
        return True
    return period.evolutions_used + period.evolutions_held < limit


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

    Its calls stay in the ledger without its ids: what they cost is spent. Old rows of other
    deleted accounts go at the same time. What it used beyond its plan is charged.
    """
    now = database_now()
    for used in QuotaPeriod.objects.filter(user=user, overage_from__isnull=False):
        charge_overage(used.pk)
    DeletedAccountUsage.objects.filter(end__lt=now).delete()
    period = QuotaPeriod.objects.filter(user=user, end__gt=now).first()
    if period is not None:
        DeletedAccountUsage.objects.update_or_create(
            email_digest=keyed_digest(user.email),
            defaults={
                "end": period.end,
                "evolutions_used": period.evolutions_used + period.evolutions_held,
                "tokens_used": max(0, period.tokens_used + period.tokens_held),
                "usd_used": period.usd_used + period.usd_held,
            },
        )
    UsageRecord.objects.filter(user=user).update(
        user=None, api_key_id=None, session_id=None, quota_period_id=None, request_id=""
    )
    # What they summed up counts under NOBODY now.
    DailySpend.objects.filter(user_id=user.pk).delete()


def _count_deleted_account(period: QuotaPeriod) -> None:
    """Count what a deleted account of the same address used since this period began."""
    earlier = DeletedAccountUsage.objects.filter(
        email_digest=keyed_digest(period.user.email), end__gt=period.start, end__lte=period.end
    ).first()
    if earlier is not None:
        QuotaPeriod.objects.filter(pk=period.pk).update(
            evolutions_used=F("evolutions_used") + earlier.evolutions_used,
            tokens_used=F("tokens_used") + earlier.tokens_used,
            usd_used=F("usd_used") + earlier.usd_used,
        )


def record_quota_exceeded(reached: LimitReached, *, user_id: UUID) -> None:
    """Note that a job had to wait for the rest of a limit, for the plan page and an e-mail."""
    if isinstance(reached, QuotaExceeded) and not reached.is_busy:
        period = open_quota_period(user_id, reached.entitlement.period)
        period.waited_for = (period.waited_for or {}) | {reached.resource.value: reached.limit}
        period.save(update_fields=["waited_for", "updated_at"])


def send_quota_notices() -> int:
    """E-mail users who came near a plan limit or had to wait for one; returns how many e-mails.

    Not inside a transaction; once a minute, by whichever host comes first.
    """
    if not settings.BILLING_ENABLED or not cache.add("quota-notices", 1, NOTICE_INTERVAL):
        return 0
    now = database_now()
    begun = UsageRecord.objects.filter(user=OuterRef("user"), created_at__gte=now - RECENT_USAGE)
    rows = QuotaPeriod.objects.filter(start__lte=now, end__gt=now, user__is_active=True)
    recent = rows.filter(Q(updated_at__gte=now - RECENT_USAGE) | Exists(begun))
    return sum(_notify(period) for period in recent.select_related("user").order_by("pk"))


def _notify(period: QuotaPeriod) -> int:
    entitlement, sent = entitlement_for(period.user_id), 0
    if entitlement is None or entitlement.period.start != period.start:
        return 0
    for usage in quota_usages(entitlement, period):
        before, said = period.notified or {}, f"{usage.state} {usage.limit}"
        is_told = before.get(usage.resource) in {said, f"reached {usage.limit}"}
        if usage.state == "open" or is_told or not (usage.limit or usage.has_waited):
            continue
        period.notified = before | {usage.resource: said}
        # Recorded first: an e-mail lost with its process is better than one at each sweep.
        unchanged = Q(notified=before) if before else Q(notified__isnull=True)
        rows = QuotaPeriod.objects.filter(unchanged, pk=period.pk)
        if not rows.update(notified=period.notified):
            return sent
        send_email(
            "quota_reached" if usage.state == "reached" else "quota_near",
            to=period.user.email,
            site=settings.PUBLIC_URL,
            resource="model cost" if usage.resource == QuotaResource.USD else usage.resource,
            limit=format_quota(usage.limit or 0, QuotaResource(usage.resource)),
            until=f"{period.end:%-d %B %Y, %H:%M} UTC",
            overage="yes" if overage_limit(entitlement) == usage.limit else "",
        )
        sent += 1
    return sent


def _state_digest(entitlement: Entitlement, resource: QuotaResource) -> str:
    limit: Decimal | int | None = monthly_limit(entitlement, resource)
    parts = (resource, entitlement.period.start.isoformat(), limit)
    return hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()
