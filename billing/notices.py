"""Words to somebody who has used 80 %, or all, of what the plan includes: once for each limit."""

from uuid import UUID

from django.conf import settings

from accounts.clock import database_now
from accounts.mail import send_letter
from billing.models import QuotaHold, QuotaNotice, QuotaPeriod, Resource
from billing.plans import so_many

NEAR, FULL = 80, 100
AT_ONCE = 50


def note_use(hold: QuotaHold, *, used: int) -> None:
    """A notice waits to be sent if so much use of the hold's limit is worth one."""
    if hold.limit and used * 100 >= hold.limit * NEAR:
        percent = FULL if used >= hold.limit else NEAR
        _note(hold.period_id, Resource(hold.resource), percent, hold.limit)


def note_refusal(period: QuotaPeriod, *, resource: Resource, limit: int) -> None:
    """As for all of it: what is left was too little for what was asked."""
    _note(period.pk, resource, FULL, limit)


def send_quota_notices() -> int:
    """Notices that wait are on their way by letter; returns how many. Not inside a transaction."""
    if not settings.BILLING_ENABLED:
        return 0
    waiting = QuotaNotice.objects.filter(sent_at=None).select_related("period__user")
    return sum(_send(notice) for notice in list(waiting[:AT_ONCE]))


def _send(notice: QuotaNotice) -> int:
    rows = QuotaNotice.objects.filter(pk=notice.pk, sent_at=None)
    # Marked first: a letter that is lost with its process is better than one sent at each round.
    if not rows.update(sent_at=database_now()):
        return 0
    user = notice.period.user
    if user.is_active:
        send_letter(
            "quota_reached" if notice.percent == FULL else "quota_near",
            to=user.email,
            site=settings.PUBLIC_URL,
            resource=notice.resource,
            limit=so_many(notice.limit, notice.resource.removesuffix("s")),
            until=f"{notice.period.end:%-d %B %Y, %H:%M} UTC",
        )
    return 1


def _note(period_id: UUID, resource: Resource, percent: int, limit: int) -> None:
    notice = QuotaNotice(period_id=period_id, resource=resource, percent=percent, limit=limit)
    QuotaNotice.objects.bulk_create([notice], ignore_conflicts=True)
