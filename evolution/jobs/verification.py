"""Verification: checks every invariant of the stored data and names what violates one.

One playbook at a time, each in one snapshot of the database, so that concurrent work does not look
like a fault. Nothing is written.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q, Subquery, Sum
from django.db.models.functions import Coalesce

from billing.models import NOBODY, QuotaPeriod, UsageRecord
from billing.usage.daily_spend import mismatched_days
from core.clock import database_now
from evolution.jobs.trial_verification import trial_problems
from evolution.models import EvolutionJob, Outcome, Reflection, Tallies
from playbooks.models import Delta, Playbook, Trial, Version, Vote
from playbooks.services.seals import check_seals, check_serving
from playbooks.services.verification import check_rows, check_versions

SETTLED_WITHIN = timedelta(minutes=2)
"""Within this time after the longest call, the sweep settles calls of dead processes."""
ENDED = ("completed", "failed", "cancelled")


@dataclass(frozen=True)
class Problem:
    """Rows (`ids`) that violate the invariant `code`."""

    code: str
    playbook_id: UUID | None
    ids: tuple[str, ...]
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "playbook": str(self.playbook_id) if self.playbook_id else None,
            "ids": list(self.ids),
            "problem": self.sentence,
        }


Check = Callable[[Playbook], Iterator[Problem]]


def verify_database(only: Iterable[UUID] = ()) -> Iterator[Problem | Playbook]:
    """Each playbook (of `only`, else all) after its problems, one in memory at a time.

    Without `only`, problems of no playbook come last.
    """
    wanted = list(only)
    last = UUID(int=0)
    while True:
        rows = Playbook.objects.filter(pk__gt=last).order_by("pk")
        found = (rows.filter(pk__in=wanted) if wanted else rows).values_list("pk", flat=True)
        first = found.first()
        if first is None:
            break
        last = first
        with consistent_snapshot():
            playbook = Playbook.objects.filter(pk=last).first()
            if playbook is not None:
                for check in CHECKS:
                    yield from check(playbook)
                yield playbook
    if not wanted:
        with consistent_snapshot():
            yield from quotas()
            yield from daily_spend()


@contextmanager
def consistent_snapshot() -> Iterator[None]:
    """Every query of the block sees the same state; other transactions are not blocked."""
    inside = connection.in_atomic_block
    with _deferred_transaction(), transaction.atomic():
        if connection.vendor == "postgresql" and not inside:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield


@contextmanager
def _deferred_transaction() -> Iterator[None]:
    """On SQLite the transaction begins as a reader, so that others can write.

    Elsewhere our transactions begin as writers; the sums of 100,000 calls take seconds.
    """
    if connection.vendor != "sqlite":
        yield
        return
    sqlite: Any = connection
    sqlite.ensure_connection()  # which sets the mode from the settings
    kept = sqlite.transaction_mode
    sqlite.transaction_mode = "DEFERRED"
    try:
        yield
    finally:
        sqlite.transaction_mode = kept


def version_history(playbook: Playbook) -> Iterator[Problem]:
    """Versions are consecutive, replay from their deltas and match the rows."""
    problems, last = check_versions(playbook)
    for sentence in problems + check_rows(playbook, last):
        yield Problem("history", playbook.pk, (), sentence)
    wrong = playbook.versions.exclude(number=1).exclude(parent__number=F("number") - 1)
    for version in wrong.defer("text").iterator():
        yield _of(playbook, "parent", f"version {version.number} does not follow the one before")


def lost_outcomes(playbook: Playbook) -> Iterator[Problem]:
    """Every outcome is pending, bound to an active job, processed once, or set aside."""
    outcomes = Outcome.objects.filter(playbook=playbook).select_related("job").order_by("pk")
    # A training's job keeps its outcomes: no agent reported them.
    bound = outcomes.filter(processed_at=None, set_aside_reason="", job__training=None)
    for row in bound.filter(job__status__in=ENDED).iterator():
        status = row.job.status if row.job else ""
        sentence = f"an outcome is bound to a job that is {status}, so no other will take it"
        yield _of(playbook, "outcome_lost", sentence, row.pk, row.job_id)
    done = outcomes.exclude(processed_at=None)
    for row in done.filter(job=None).iterator():
        yield _of(playbook, "outcome_lost", "an outcome was processed by no job", row.pk)
    for row in done.exclude(job=None).exclude(job__status="completed").iterator():
        sentence = "an outcome is processed although its job is not completed"
        yield _of(playbook, "outcome_early", sentence, row.pk, row.job_id)
    for row in outcomes.exclude(job=None).exclude(job__playbook=playbook).iterator():
        sentence = "an outcome is bound to a job of another playbook"
        yield _of(playbook, "outcome_foreign", sentence, row.pk, row.job_id)


def jobs(playbook: Playbook) -> Iterator[Problem]:
    """At most one is active; each is in a state that its methods can reach."""
    rows = EvolutionJob.objects.filter(playbook=playbook).order_by("pk")
    active = list(rows.active().values_list("pk", flat=True)[:10])
    if len(active) > 1:
        yield _of(playbook, "two_active_jobs", "more than one job is active", *active)
    broken = {
        "is running without a lease": Q(status="running", lease_expires_at=None),
        "is running under no fence": Q(status="running", fence=0),
        "has ended without a time": Q(status__in=ENDED, completed_at=None),
        "is active, but has an end": Q(
            status__in=("queued", "running"), completed_at__isnull=False
        ),
        "has a version without being completed": ~Q(status="completed")
        & Q(to_version__isnull=False),
        "was rescued too often": Q(rescues__gt=4),
    }
    for what, condition in broken.items():
        for pk in rows.filter(condition).values_list("pk", flat=True).iterator():
            yield _of(playbook, "job_state", f"a job {what}", pk)


def versions_of_jobs(playbook: Playbook) -> Iterator[Problem]:
    """A job and its version point at each other, and no other row at either."""
    mine = EvolutionJob.objects.filter(
        pk=OuterRef("job_id"), playbook=playbook, status="completed", to_version=OuterRef("pk")
    )
    made = Version.objects.filter(playbook=playbook).exclude(job_id=None)
    for pk, number, job in made.filter(~Exists(mine)).values_list("pk", "number", "job_id"):
        sentence = f"version {number} came from a job that does not know it"
        yield _of(playbook, "version_job", sentence, pk, job)
    theirs = Version.objects.filter(pk=OuterRef("to_version"), job_id=OuterRef("pk"))
    done = EvolutionJob.objects.filter(playbook=playbook).exclude(to_version=None)
    for pk, version in done.filter(~Exists(theirs)).values_list("pk", "to_version"):
        sentence = "a job points at a version that is not its own"
        yield _of(playbook, "version_job", sentence, pk, version)


def each_job(playbook: Playbook) -> Iterator[Problem]:
    """A job applied its own outcomes once, and its LLM calls are metered."""
    for job in EvolutionJob.objects.filter(playbook=playbook).order_by("pk").iterator():
        mine = Outcome.objects.filter(job=job).values_list("pk", "processed_at")
        processed = {str(pk) for pk, at in mine if at is not None}
        yield from _applied(playbook, job, processed)
        yield from _paid(playbook, job)


def _applied(playbook: Playbook, job: EvolutionJob, processed: set[str]) -> Iterator[Problem]:
    if job.status == EvolutionJob.Status.COMPLETED and job.outcomes_processed != len(processed):
        sentence = f"a job counts {job.outcomes_processed} outcomes, {len(processed)} name it"
        yield _of(playbook, "outcome_count", sentence, job.pk)
    deltas = Delta.objects.filter(job_id=job.pk).exclude(status=Delta.Status.REJECTED)
    # A merge unites the sources of both bullets, which earlier jobs may have brought.
    for pk, ids in deltas.exclude(type="MERGE").values_list("pk", "outcome_ids").iterator():
        if foreign := set(ids) - processed:
            sentence = "a delta applies outcomes that its job has not processed"
            yield _of(playbook, "outcome_twice", sentence, pk, job.pk, *sorted(foreign))


def _paid(playbook: Playbook, job: EvolutionJob) -> Iterator[Problem]:
    calls = UsageRecord.objects.filter(job_id=job.pk)
    steps = calls.values("step").annotate(calls=Count("pk"), last=Max("attempt")).order_by()
    for row in steps.exclude(calls=F("last")):
        sentence = (
            f"{row['calls']} calls of step {row['step']} are metered, the last is {row['last']}"
        )
        yield _of(playbook, "metering_gap", sentence, job.pk)
    if job.engine != "openai":
        return
    answered = set(calls.filter(status="answered").values_list("step", flat=True))
    stored = Reflection.objects.filter(job=job).values_list("outcome_id", flat=True)
    asked = [f"reflect:{outcome}" for outcome in stored] + ["curate"] * (job.curation is not None)
    for step in set(asked) - answered:
        yield _of(playbook, "metering_missing", f"an answer to {step} is not metered", job.pk)


def outcome_counts(playbook: Playbook) -> Iterator[Problem]:
    """The counts and tallies are what the outcomes add up to."""
    kept, found = Tallies.stored(playbook), Tallies.recounted(playbook)
    if kept != found:
        sentence = f"{found.reported} outcomes were reported, {kept.reported} counted, or by others"
        yield _of(playbook, "outcome_counts", f"{sentence}: manage.py recount_outcomes")


def trials(playbook: Playbook) -> Iterator[Problem]:
    """Each trial, open or ended, is what its outcomes amount to."""
    for trial in Trial.objects.filter(playbook=playbook).order_by("created_at").iterator():
        for sentence in trial_problems(trial):
            yield _of(playbook, "trial", f"a {trial.kind} trial: {sentence}", trial.pk)


def votes(playbook: Playbook) -> Iterator[Problem]:
    """A machine's vote rests on an outcome that was processed."""
    waiting = Outcome.objects.filter(pk=OuterRef("outcome_id"), processed_at=None)
    cast = Vote.objects.filter(bullet__playbook=playbook).exclude(source__startswith="user:")
    for pk, outcome in cast.filter(Exists(waiting)).values_list("pk", "outcome_id").iterator():
        sentence = "a vote rests on an outcome that was not processed"
        yield _of(playbook, "vote_early", sentence, pk, outcome)


def open_calls(playbook: Playbook) -> Iterator[Problem]:
    """No call stays open in the ledger longer than a call can last."""
    longest = timedelta(seconds=settings.LLM_DEADLINE_SECONDS + 10) + SETTLED_WITHIN
    open_ = UsageRecord.objects.filter(playbook_id=playbook.pk, status="started")
    old = open_.filter(created_at__lt=database_now() - longest)
    for pk in old.values_list("pk", flat=True).iterator():
        yield _of(playbook, "metering_open", "a call was never ended; does the sweep run?", pk)
    held = UsageRecord.objects.filter(playbook_id=playbook.pk, held_usd__gt=0)
    for pk in held.exclude(status="started").values_list("pk", flat=True).iterator():
        yield _of(playbook, "metering_held", "a call has ended and still holds money", pk)


def seals(playbook: Playbook) -> Iterator[Problem]:
    """Nothing was changed since it was sealed."""
    for sentence in check_seals(playbook):
        yield Problem("seal", playbook.pk, (), sentence)


def quotas() -> Iterator[Problem]:
    """What a plan month holds is what its running jobs and calls reserved."""
    jobs = EvolutionJob.objects.filter(quota_period_id=OuterRef("pk")).order_by()
    calls = UsageRecord.objects.filter(quota_period_id=OuterRef("pk"), status="started").order_by()
    sums = {
        "evolutions": jobs.values("quota_period_id").annotate(sum=Count("pk")).values("sum"),
        "tokens": calls.values("quota_period_id").annotate(sum=Sum("held_tokens")).values("sum"),
    }
    for resource, reserved in sums.items():
        rows = QuotaPeriod.objects.annotate(reserved=Coalesce(Subquery(reserved), 0))
        wrong = rows.exclude(**{f"{resource}_held": F("reserved")})
        for pk, total in wrong.values_list("pk", "reserved").iterator():
            sentence = f"a plan month holds other {resource} than are reserved, which are {total}"
            yield Problem("quota_held", None, (str(pk),), sentence)


def daily_spend() -> Iterator[Problem]:
    """The daily spend is the sum of the day's calls."""
    for day, cost in mismatched_days():
        playbook_id = None if day.playbook_id == NOBODY else day.playbook_id
        sentence = f"the sum of {day.day} is not what its calls cost, which is {cost} US$"
        ids = (str(day.user_id), "own key" if day.own_key else "operator's key")
        yield Problem("spent_day", playbook_id, ids, f"{sentence}: manage.py rebuild_daily_spend")


def serving_ids_of_logs(tokens: Iterable[str]) -> Iterator[Problem]:
    """Versions have the seals that serving_ids in agents' logs carry."""
    for token in tokens:
        if sentence := check_serving(token):
            yield Problem("seal", None, (), sentence)


def _of(playbook: Playbook, code: str, sentence: str, *ids: object) -> Problem:
    return Problem(code, playbook.pk, tuple(str(each) for each in ids if each), sentence)


CHECKS: tuple[Check, ...] = (
    version_history,
    lost_outcomes,
    jobs,
    versions_of_jobs,
    each_job,
    outcome_counts,
    trials,
    votes,
    open_calls,
    seals,
)
