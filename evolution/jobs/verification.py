"""Verification: checks every invariant of the stored data and names what violates one.

One playbook at a time, each in one snapshot of the database, so that concurrent work does not look
like a fault. Nothing is written.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from math import isclose
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q, Subquery, Sum
from django.db.models.functions import Coalesce

from billing.models import NOBODY, QuotaPeriod, UsageRecord
from billing.usage.daily_spend import mismatched_days
from core.clock import database_now
from evolution.engine.adaptive_limits import longest_deadline
from evolution.models import EvolutionJob, Outcome, Reflection, Tallies
from playbooks.models import Arm, Delta, Playbook, Trial, Version, Vote
from playbooks.services.seals import check_seals, check_serving
from playbooks.services.verification import check_rows, check_versions

SETTLED_WITHIN = timedelta(minutes=2)
"""Within this time after the longest call, the sweep settles calls of dead processes."""
ENDED = ("completed", "failed", "cancelled")
TRIAL_COUNTS = ("stable_tasks", "stable_successes", "newest_tasks", "newest_successes", "clients")


@dataclass(frozen=True)
class Problem:
    """Rows (`ids`) that violate the invariant `code`."""

    code: str
    playbook_id: UUID | None
    ids: tuple[str, ...]
    sentence: str

    def as_dict(self) -> dict[str, Any]:
        playbook = str(self.playbook_id) if self.playbook_id else None
        return {"code": self.code, "playbook": playbook, "ids": self.ids, "problem": self.sentence}


Group = tuple[Any, ...]
"""Code, sentence, queryset of the rows at fault, and the field that names a related row."""
Found = Iterator[tuple[Any, ...]]
"""Code, sentence and ids of rows."""


def verify_database(only: Iterable[UUID] = ()) -> Iterator[Problem | Playbook]:
    """Each playbook (of `only`, else all) after its problems, one in memory at a time.

    Without `only`, problems of no playbook come last.
    """
    wanted = list(only)
    for pk in wanted or list(Playbook.objects.order_by("pk").values_list("pk", flat=True)):
        with consistent_snapshot():
            playbook = Playbook.objects.filter(pk=pk).first()
            if playbook is not None:
                for check in (versions, broken_rows, each_job, evidence):
                    for code, sentence, *ids in check(playbook):
                        names = tuple(str(each) for each in ids if each)
                        yield Problem(code, playbook.pk, names, sentence)
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


def versions(playbook: Playbook) -> Found:
    """Versions are consecutive, replay from their deltas, match the rows and have their seals."""
    problems, last = check_versions(playbook)
    for sentence in problems + check_rows(playbook, last):
        yield "history", sentence
    wrong = playbook.versions.exclude(number=1).exclude(parent__number=F("number") - 1)
    for number in wrong.values_list("number", flat=True):
        yield "parent", f"version {number} does not follow the one before"
    for sentence in check_seals(playbook):
        yield "seal", sentence


def broken_rows(playbook: Playbook) -> Found:
    """Rows in a state that no service leaves behind."""
    groups = (_broken_outcomes, _broken_jobs, _broken_versions, _broken_calls)
    for code, sentence, rows, *related in (found for group in groups for found in group(playbook)):
        for ids in rows.values_list("pk", *related).iterator():
            yield code, sentence, *ids
    active = EvolutionJob.objects.active().filter(playbook=playbook).order_by("pk")
    pks = list(active.values_list("pk", flat=True)[:10])
    if len(pks) > 1:
        yield "two_active_jobs", "more than one job is active", *pks


def _broken_outcomes(playbook: Playbook) -> Iterator[Group]:
    """Every outcome is pending, bound to an active job, processed once, or set aside."""
    outcomes = Outcome.objects.filter(playbook=playbook).order_by("pk")
    done = outcomes.exclude(processed_at=None)
    # A training's job keeps its outcomes: no agent reported them.
    bound = outcomes.filter(processed_at=None, set_aside_reason="", job__training=None)
    lost = "an outcome is bound to a job that has ended, so no other will take it"
    yield "outcome_lost", lost, bound.filter(job__status__in=ENDED), "job"
    yield "outcome_lost", "an outcome was processed by no job", done.filter(job=None)
    early = "an outcome is processed although its job is not completed"
    yield "outcome_early", early, done.exclude(job=None).exclude(job__status="completed"), "job"
    foreign = outcomes.exclude(job=None).exclude(job__playbook=playbook)
    yield "outcome_foreign", "an outcome is bound to a job of another playbook", foreign, "job"
    waiting = Outcome.objects.filter(pk=OuterRef("outcome_id"), processed_at=None)
    cast = Vote.objects.filter(bullet__playbook=playbook).exclude(source__startswith="user:")
    sentence = "a vote rests on an outcome that was not processed"
    yield "vote_early", sentence, cast.filter(Exists(waiting)), "outcome_id"


def _broken_jobs(playbook: Playbook) -> Iterator[Group]:
    """Each is in a state that its methods can reach."""
    rows = EvolutionJob.objects.filter(playbook=playbook).order_by("pk")
    active, completed = Q(status__in=("queued", "running")), Q(status="completed")
    broken = {
        "is running without a lease": Q(status="running", lease_expires_at=None),
        "is running under no fence": Q(status="running", fence=0),
        "has ended without a time": Q(status__in=ENDED, completed_at=None),
        "is active, but has an end": active & Q(completed_at__isnull=False),
        "has a version without being completed": ~completed & Q(to_version__isnull=False),
        "was rescued too often": Q(rescues__gt=4),
    }
    for what, condition in broken.items():
        yield "job_state", f"a job {what}", rows.filter(condition)


def _broken_versions(playbook: Playbook) -> Iterator[Group]:
    """A job and its version point at each other, and no other row at either."""
    mine = EvolutionJob.objects.filter(
        pk=OuterRef("job_id"), playbook=playbook, status="completed", to_version=OuterRef("pk")
    )
    made = Version.objects.filter(playbook=playbook).exclude(job_id=None)
    sentence = "a version came from a job that does not know it"
    yield "version_job", sentence, made.filter(~Exists(mine)), "job_id"
    theirs = Version.objects.filter(pk=OuterRef("to_version"), job_id=OuterRef("pk"))
    done = EvolutionJob.objects.filter(playbook=playbook).exclude(to_version=None)
    sentence = "a job points at a version that is not its own"
    yield "version_job", sentence, done.filter(~Exists(theirs)), "to_version"


def _broken_calls(playbook: Playbook) -> Iterator[Group]:
    """No call stays open in the ledger longer than a call can last."""
    calls = UsageRecord.objects.filter(playbook_id=playbook.pk)
    longest = (
        timedelta(seconds=longest_deadline(settings.LLM_DEADLINE_SECONDS) + 10) + SETTLED_WITHIN
    )
    old = calls.filter(status="started", created_at__lt=database_now() - longest)
    yield "metering_open", "a call never ended; is the sweep running?", old
    held = calls.filter(held_usd__gt=0).exclude(status="started")
    yield "metering_held", "a call has ended and still holds money", held


def each_job(playbook: Playbook) -> Found:
    """A job applied its own outcomes once, and its LLM calls are metered."""
    for job in EvolutionJob.objects.filter(playbook=playbook).order_by("pk").iterator():
        mine = Outcome.objects.filter(job=job).exclude(processed_at=None)
        yield from _applied(job, set(map(str, mine.values_list("pk", flat=True))))
        yield from _paid(job)


def _applied(job: EvolutionJob, processed: set[str]) -> Found:
    if job.status == EvolutionJob.Status.COMPLETED and job.outcomes_processed != len(processed):
        sentence = f"a job counts {job.outcomes_processed} outcomes, {len(processed)} name it"
        yield "outcome_count", sentence, job.pk
    deltas = Delta.objects.filter(job_id=job.pk).exclude(status=Delta.Status.REJECTED)
    # A merge unites the sources of both bullets, which earlier jobs may have brought.
    for pk, ids in deltas.exclude(type="MERGE").values_list("pk", "outcome_ids").iterator():
        if foreign := set(ids) - processed:
            sentence = "a delta applies outcomes that its job has not processed"
            yield "outcome_twice", sentence, pk, job.pk, *sorted(foreign)


def _paid(job: EvolutionJob) -> Found:
    calls = UsageRecord.objects.filter(job_id=job.pk)
    steps = calls.values("step").annotate(calls=Count("pk"), last=Max("attempt")).order_by()
    for row in steps.exclude(calls=F("last")):
        metered = f"{row['calls']} calls of step {row['step']} are metered"
        yield "metering_gap", f"{metered}, the last is {row['last']}", job.pk
    if job.engine != "openai":
        return
    answered = set(calls.filter(status="answered").values_list("step", flat=True))
    stored = Reflection.objects.filter(job=job).values_list("outcome_id", flat=True)
    asked = [f"reflect:{outcome}" for outcome in stored] + ["curate"] * (job.curation is not None)
    for step in set(asked) - answered:
        yield "metering_missing", f"an answer to {step} is not metered", job.pk


def evidence(playbook: Playbook) -> Found:
    """Counts, tallies and trials, open or ended, are what the outcomes amount to."""
    kept, found = Tallies.stored(playbook), Tallies.recounted(playbook)
    if kept != found:
        counted = f"{kept.reported} counted, or by others"
        yield "outcome_counts", f"{found.reported} outcomes were reported, {counted}"
    for trial in Trial.objects.filter(playbook=playbook).order_by("created_at").iterator():
        for sentence in trial_problems(trial):
            yield "trial", f"a {trial.kind} trial: {sentence}", trial.pk


def trial_problems(trial: Trial) -> Iterator[str]:
    """What is wrong with a trial, open or ended; nothing if it is sound.

    A correction after the end of the trial changes its outcome, not what was counted.
    """
    again, decided = Trial(control_share=trial.control_share, error=trial.error), 0
    rows = Outcome.objects.filter(trial=trial).order_by("trial_position")
    columns = ("trial_position", "arm", "status", "client", "corrected_at", "trial_success")
    outcomes = list(rows.only(*columns))
    for number, outcome in enumerate(outcomes, start=1):
        if outcome.trial_position != number:
            yield f"its outcome {number} is missing"
            return
        success = outcome.status == Outcome.Status.SUCCESS
        if outcome.corrected_at and outcome.trial_success is not None:
            success = outcome.trial_success
        again.count(newest=outcome.arm == Arm.NEWEST, success=success, client=outcome.client)
        decided = decided or (number if _verdict_of(again) else 0)
    yield from _differences(trial, again)
    corrected = any(outcome.corrected_at for outcome in outcomes)
    if not corrected and 0 < decided < len(outcomes):
        yield f"its outcome {decided} decided it, and {len(outcomes)} were counted"


def _differences(trial: Trial, again: Trial) -> Iterator[str]:
    for name in TRIAL_COUNTS:
        kept, counted = getattr(trial, name), getattr(again, name)
        if kept != counted:
            yield f"its {name} are {kept}, its outcomes say {counted}"
    for name in ("worse_by", "better_by"):
        kept, counted = getattr(trial.tally, name), getattr(again.tally, name)
        if not isclose(kept, counted, rel_tol=1e-9):
            yield f"its evidence {name} is {kept:.4g}, its outcomes say {counted:.4g}"
    found = _verdict_of(again)
    # A person may stop a trial that has found harm before the harm is undone.
    # A version that its check has refused was never on trial.
    undecided = trial.verdict == Trial.Verdict.NO_DIFFERENCE or not trial.tally.tasks
    called = "" if undecided else trial.verdict
    if called not in {found, Trial.Verdict.STOPPED}:
        yield f"its verdict is {trial.verdict or 'open'}, its outcomes say {found or 'none'}"


def _verdict_of(trial: Trial) -> str:
    if trial.tally.is_worse(error=trial.error):
        return Trial.Verdict.WORSE
    return Trial.Verdict.BETTER if trial.tally.is_better(error=trial.error) else ""


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
            sentence = f"a plan month holds the wrong {resource}: {total} are reserved"
            yield Problem("quota_held", None, (str(pk),), sentence)


def daily_spend() -> Iterator[Problem]:
    """The daily spend is the sum of the day's calls."""
    for day, cost in mismatched_days():
        playbook_id = None if day.playbook_id == NOBODY else day.playbook_id
        sentence = f"the sum of {day.day} differs from the cost of its calls, ${cost}"
        ids = (str(day.user_id), "own key" if day.own_key else "operator's key")
        yield Problem("spent_day", playbook_id, ids, f"{sentence}: manage.py rebuild_daily_spend")


def serving_ids_of_logs(tokens: Iterable[str]) -> Iterator[Problem]:
    """Versions have the seals that serving_ids in agents' logs carry."""
    for token in tokens:
        if sentence := check_serving(token):
            yield Problem("seal", None, (), sentence)
