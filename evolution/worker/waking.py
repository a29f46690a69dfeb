"""Jobs that wait long for a person go on as soon as what they wait for is mended."""

from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db import transaction

from billing.limits import CapReached, Spender, refuse_over_cap
from evolution.jobs import ring
from evolution.models import EvolutionJob
from evolution.worker.credentials import credential_for
from evolution.worker.quotas import CODES, COST_CAP, is_room_again

AT_ONCE, FEW = 200, 50
ROOM = Decimal("0.10")
"""US dollars: the room for which a job is woken that does not say how much it needs."""
LIMITED = {*CODES, COST_CAP}


def wake(now: datetime) -> int:
    """Jobs whose key was changed, or whose limit or plan has room again, are due at once."""
    waiting = EvolutionJob.objects.filter(status="queued", next_attempt_at__gt=now, training=None)
    rows = waiting.exclude(wait_line="").select_related("playbook")
    mendable = rows.exclude(wait_code__in=LIMITED).order_by("next_attempt_at")[:AT_ONCE]
    # Many may wait for the end of a month: a few of them each time, whichever they are.
    limited = rows.filter(wait_code__in=LIMITED).order_by("?")[:FEW]
    return sum(_wake(job.pk, now) for job in [*mendable, *limited] if _is_mended(job, now))


def _is_mended(job: EvolutionJob, now: datetime) -> bool:
    owner_id = job.playbook.owner_id
    if owner_id is None:
        return False
    if job.wait_code in CODES:
        return is_room_again(job, owner_id)
    credential = credential_for(owner_id)
    if credential.line != job.wait_line:
        return True
    if job.wait_code != COST_CAP:
        return False
    spender = Spender(owner_id, job.playbook_id, credential.line, credential.own)
    try:
        refuse_over_cap(spender, want=ROOM if job.wait_usd is None else job.wait_usd, now=now)
    except CapReached:
        return False
    return True


def _wake(job_id: UUID, now: datetime) -> int:
    with transaction.atomic():
        rows = EvolutionJob.objects.filter(
            pk=job_id, status="queued", next_attempt_at__gt=now
        ).select_for_update(of=("self",), no_key=True, skip_locked=True)
        job = rows.first()
        if job is None:
            return 0
        job.next_attempt_at = None
        job.save(update_fields=["next_attempt_at", "updated_at"])
        ring(job.pk, now=now)
    return 1
