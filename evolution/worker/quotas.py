"""What an owner's plan includes, asked for before an evolution begins and before each call."""

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings

from billing.limits import CapReached
from billing.models import Resource
from billing.quota import QuotaReached, has_room, note_reached, release, reserve
from evolution.engine.llm import HeldBack
from evolution.models import EvolutionJob
from evolution.worker.credentials import credential_for

CODES = {f"quota_{resource.value}": resource for resource in Resource}
"""Why a job waits for its plan, and for what of it."""
COST_CAP = "cost_cap"
SPARE = timedelta(minutes=2)
"""What is held outlives by so much what it is held for: only a dead process leaves it behind."""


class OverQuota(HeldBack):
    """The plan leaves no room for the call; `mark` tells the sweep when to try again."""

    def __init__(self, reached: QuotaReached, *, now: datetime) -> None:
        wait = (reached.until - now).total_seconds()
        super().__init__(reached.code, str(reached), retry_after=wait)
        self.mark = reached.mark


class OverBudget(HeldBack):
    """A limit on cost leaves no room for the call; it needs room for `want` US dollars."""

    def __init__(self, reached: CapReached, *, now: datetime) -> None:
        wait = (reached.until - now).total_seconds()
        super().__init__(COST_CAP, str(reached), retry_after=wait)
        self.want = reached.want


def may_begin(job: EvolutionJob) -> bool:
    """An evolution is held for the job, in its claim; or the job waits for its owner's plan."""
    owner_id = job.playbook.owner_id
    if owner_id is None:
        return True
    lifetime = timedelta(seconds=settings.JOB_DEADLINE_SECONDS + settings.JOB_LEASE_SECONDS)
    release(resource=Resource.EVOLUTIONS, holder_id=job.pk)
    try:
        reserve(
            user_id=owner_id,
            resource=Resource.EVOLUTIONS,
            amount=1,
            holder_id=job.pk,
            lifetime=lifetime + SPARE,
        )
    except QuotaReached as reached:
        note_reached(reached, user_id=owner_id)
        job.postpone(until=reached.until, reason=str(reached), code=reached.code, line=reached.mark)
        return False
    return True


def hold_tokens(*, owner_id: UUID, call_id: UUID, most: int, lifetime: timedelta) -> bool:
    """The most that a call can use is held for it, in its admission; False when no plan counts it.

    Raises QuotaReached.
    """
    return reserve(
        user_id=owner_id,
        resource=Resource.TOKENS,
        amount=most,
        holder_id=call_id,
        lifetime=lifetime + SPARE,
    )


def is_room_again(job: EvolutionJob, owner_id: UUID) -> bool:
    """Whether a job that waits for its plan should try again."""
    resource = CODES[job.wait_code]
    if resource == Resource.TOKENS and credential_for(owner_id).own:
        return True
    return has_room(user_id=owner_id, resource=resource, mark=job.wait_line)
