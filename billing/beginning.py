"""When plans begin to blank old traces: not by the switch alone, and not without a word before."""

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from accounts.clock import database_now
from accounts.mail import send_letter
from accounts.models import User
from billing.allowances import terms
from billing.models import PlansApply, RetentionNotice
from billing.switching import NOTICE, note_plans

AT_ONCE = 200


def send_retention_notices() -> int:
    """Who was here before plans applied is told, once, what goes and when; says to how many.

    Not inside a transaction; a part of them each time.
    """
    if not settings.BILLING_ENABLED:
        return 0
    now = database_now()
    since = note_plans(now)
    if now >= since + NOTICE:
        return 0
    told = 0
    for days, users in terms(now, than=settings.TRACE_RETENTION_DAYS):
        untold = Q(retention_notice=None) | Q(retention_notice__since__lt=since)
        has_texts = Q(playbooks__isnull=False) | Q(agent_sessions__isnull=False)
        rows = users.filter(untold, has_texts, is_active=True, created_at__lt=since)
        for user in list(rows.order_by("pk").distinct()[: AT_ONCE - told]):
            told += _tell(user, since, days)
    return told


def _tell(user: User, since: datetime, days: int) -> int:
    # Marked first: a letter that is lost with its process is better than one each hour.
    with transaction.atomic():
        RetentionNotice.objects.update_or_create(user=user, defaults={"since": since})
    send_letter(
        "retention",
        to=user.email,
        site=settings.PUBLIC_URL,
        days=str(days),
        begins=f"{since + NOTICE:%-d %B %Y}",
    )
    return 1


def retention_begins(now: datetime) -> datetime | None:
    """The moment before which no plan blanks anything; None when it is over, or billing is off."""
    row = PlansApply.objects.first() if settings.BILLING_ENABLED else None
    begins = (row.since if row else now) + NOTICE
    return begins if settings.BILLING_ENABLED and now < begins else None
