"""E-mails to users who have used 80% or all of a plan limit, once for each period and limit."""

from uuid import UUID

from django.conf import settings

from billing.models import (
    QUOTA_FULL_PERCENT,
    QUOTA_NEAR_PERCENT,
    QuotaNotice,
    QuotaPeriod,
    QuotaResource,
)
from billing.plans.entitlements import entitlement_for, format_quota, monthly_limit
from core.clock import database_now
from core.emails import send_email

BATCH_SIZE = 50


def record_usage_notice(period_id: UUID, *resources: QuotaResource) -> None:
    """Queue a notice for each of these resources whose limit is nearly or fully used."""
    period = QuotaPeriod.objects.filter(pk=period_id).first()
    entitlement = entitlement_for(period.user_id) if period else None
    if period is None or entitlement is None or entitlement.period.start != period.start:
        return
    for resource in resources:
        limit, used = monthly_limit(entitlement, resource), getattr(period, f"{resource}_used")
        if limit and used * 100 >= limit * QUOTA_NEAR_PERCENT:
            percent = QUOTA_FULL_PERCENT if used >= limit else QUOTA_NEAR_PERCENT
            _create_notice(period.pk, resource, percent, limit)


def record_refusal_notice(period: QuotaPeriod, *, resource: QuotaResource, limit: int) -> None:
    """Queue the notice of a used-up limit: the rest was too little for a request."""
    _create_notice(period.pk, resource, QUOTA_FULL_PERCENT, limit)


def send_quota_notices() -> int:
    """E-mail the queued notices; returns how many. Not inside a transaction."""
    if not settings.BILLING_ENABLED:
        return 0
    waiting = QuotaNotice.objects.filter(sent_at=None).select_related("period__user")
    return sum(_send(notice) for notice in list(waiting[:BATCH_SIZE]))


def _send(notice: QuotaNotice) -> int:
    rows = QuotaNotice.objects.filter(pk=notice.pk, sent_at=None)
    # Recorded first: an e-mail lost with its process is better than one at each sweep.
    if not rows.update(sent_at=database_now()):
        return 0
    user = notice.period.user
    if user.is_active:
        send_email(
            "quota_reached" if notice.percent == QUOTA_FULL_PERCENT else "quota_near",
            to=user.email,
            site=settings.PUBLIC_URL,
            resource="model cost" if notice.resource == QuotaResource.USD else notice.resource,
            limit=format_quota(notice.limit, QuotaResource(notice.resource)),
            until=f"{notice.period.end:%-d %B %Y, %H:%M} UTC",
        )
    return 1


def _create_notice(period_id: UUID, resource: QuotaResource, percent: int, limit: int) -> None:
    notice = QuotaNotice(period_id=period_id, resource=resource, percent=percent, limit=limit)
    QuotaNotice.objects.bulk_create([notice], ignore_conflicts=True)
