"""E-mails to users who have used 80% or all of a plan limit, once for each period and limit."""

from datetime import timedelta

from django.conf import settings
from django.core.cache import cache
from django.db.models import Exists, OuterRef, Q

from billing.models import QuotaPeriod, QuotaResource, UsageRecord
from billing.plans.entitlements import entitlement_for, format_quota, overage_limit
from billing.plans.summary import quota_usages
from core.clock import database_now
from core.emails import send_email

RECENT_USAGE = timedelta(minutes=15)
INTERVAL = 60
"""Seconds."""


def send_quota_notices() -> int:
    """E-mail users who came near a plan limit or had to wait for one; returns how many e-mails.

    Not inside a transaction; once a minute, by whichever host comes first.
    """
    if not settings.BILLING_ENABLED or not cache.add("quota-notices", 1, INTERVAL):
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
