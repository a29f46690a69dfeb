"""Evidence of trials: reports that count in one, and cases that are answered before one begins.

Cases are kept by a playbook's owner, and answered with both versions while a trial waits.
"""

import hashlib
import math
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import BooleanField, CharField, Exists, ExpressionWrapper, Q, QuerySet

from core.audit import record
from core.clock import database_now
from core.errors import Invalid
from core.security.scopes import Principal
from core.sql.compiled_queries import CompiledQuery, Param, uuid_param
from evolution.engine.adaptation.datasets import DatasetError, parse_samples
from evolution.engine.environments import MATCHES, Question, Sample, evaluate_sample, kind_of
from evolution.engine.generator import Generation
from evolution.models import Case, CaseRun, Outcome
from evolution.outcomes.validation import clean_field
from playbooks.document.text import agent_view, without_empty_sections
from playbooks.models import Arm, Playbook, Trial, Version
from playbooks.services.loading import lock_playbook, require_editable
from playbooks.services.serving_tokens import sign_serving_token
from playbooks.trials import (
    MAX_AGE,
    UNIT_LENGTH,
    Assignment,
    act_on_harm,
    count_outcomes,
    end_trial,
)

MAX_CASES, MAX_TARGET_BYTES = 200, 2_000
CLAIMED = timedelta(minutes=10)
"""How long a runner may take for one answer before another gets the case."""
BOTH = (Arm.STABLE, Arm.NEWEST)
UNIT = Param("unit", CharField())
RUNNING_TRIAL = CompiledQuery(
    lambda: Trial.objects.filter(pk=uuid_param("trial"), status="running").annotate(
        is_counted=ExpressionWrapper(
            Q(Exists(Outcome.objects.filter(trial=uuid_param("trial"), unit=UNIT))), BooleanField()
        )
    )
)


@dataclass(frozen=True)
class CaseTask:
    """A case to answer with `content`, whose version is not told; report with `serving_id`."""

    run: CaseRun
    version: Version
    content: str
    serving_id: str

    @property
    def question(self) -> str:
        return Question("", self.run.case.question, self.run.case.context).as_text()


def add_cases(
    *, playbook: Playbook, by: Principal, content: str, match: str = "", must_pass: bool = False
) -> int:
    """Add the rows of JSON Lines with `question`, `context` and `target`; how many are new.

    `match`: how answers are compared; by the targets if empty. Raises Invalid, Conflict.
    """
    try:
        samples = parse_samples(content, name="case", source="content")
    except DatasetError as error:
        raise Invalid.field("content", str(error)) from None
    return len(_store_cases(playbook, by, samples, match=match, must_pass=must_pass))


def keep_as_case(*, outcome: Outcome, by: Principal, target: str) -> Case | None:
    """The outcome's task with its right answer is a case; None if it is one already."""
    if not target.strip():
        raise Invalid.field(
            "target", "Enter the right answer: without one, nothing can be checked."
        )
    sample = Sample(Question("", outcome.task_description), target.strip())
    return next(iter(_store_cases(outcome.playbook, by, [sample], outcome=outcome)), None)


def remove_case(*, case: Case, by: Principal) -> None:
    """The case is gone; a check that waited for its answers goes on without it."""
    with transaction.atomic():
        playbook = case.playbook
        lock_playbook(playbook)
        case.delete()
        record(action="remove_case", by=by, subject=playbook, owner=playbook.owner_id)
        decide_gate(playbook)


def _store_cases(
    playbook: Playbook,
    by: Principal,
    samples: list[Sample],
    *,
    match: str = "",
    must_pass: bool = False,
    outcome: Outcome | None = None,
) -> list[Case]:
    if match and match not in MATCHES:
        raise Invalid.field("match", f"Use one of: {', '.join(MATCHES)}.")
    found = [_case(playbook, sample, match or kind_of([sample])) for sample in samples]
    with transaction.atomic():
        lock_playbook(playbook)
        require_editable(playbook)
        known = set(playbook.cases.values_list("digest", flat=True))
        new = {case.digest: case for case in found if case.digest not in known}
        if len(known) + len(new) > MAX_CASES:
            raise Invalid.field("content", f"A playbook has at most {MAX_CASES} cases.")
        for case in new.values():
            case.must_pass, case.outcome = must_pass, outcome
        Case.objects.bulk_create(new.values())
        playbook.save(update_fields=["updated_at"])
        record(action="add_cases", by=by, subject=playbook, owner=playbook.owner_id, cases=len(new))
    return list(new.values())


def _case(playbook: Playbook, sample: Sample, match: str) -> Case:
    limit = settings.MAX_TASK_BYTES
    question = clean_field("question", sample.question.task, limit)
    context = clean_field("context", sample.question.context, settings.MAX_TRACE_BYTES)
    target = clean_field("target", sample.target, MAX_TARGET_BYTES)
    digest = hashlib.sha256(f"{context}\n\n{question}".encode()).hexdigest()
    return Case(
        playbook=playbook,
        question=question,
        context=context,
        target=target,
        match=match,
        digest=digest,
    )


def next_case(*, playbook: Playbook, by: Principal) -> CaseTask | None:
    """The next case to answer while a version waits for its check; None if there is none."""
    with transaction.atomic():
        lock_playbook(playbook)
        trial = gating_trial(playbook)
        run = _claim(trial) if trial else None
    if trial is None or run is None:
        return None
    version = trial.candidate if run.arm == Arm.NEWEST else trial.stable_version
    assignment = Assignment(trial, run.unit, run.arm, is_case=True)
    return CaseTask(
        run,
        version,
        without_empty_sections(agent_view(version.text)),
        sign_serving_token(version=version, principal=by, assignment=assignment),
    )


def gating_trial(playbook: Playbook) -> Trial | None:
    """The trial of a version that waits for its check."""
    if playbook.open_trial_id is None:
        return None
    rows = Trial.objects.filter(playbook=playbook, status=Trial.Status.GATING)
    versions = ("stable_version", "candidate")
    return rows.select_related(*versions).defer(*(f"{name}__text" for name in versions)).first()


def _claim(trial: Trial) -> CaseRun | None:
    now, runs = database_now(), _runs(trial)
    for case, arm, turn in _wanted(trial, runs):
        run = runs.get((case, arm, turn))
        run = run or CaseRun(trial=trial, case_id=case, arm=arm, round=turn)
        if run.passed is None and (not run.unit or run.claimed_at < now - CLAIMED):
            run.unit, run.claimed_at = secrets.token_hex(UNIT_LENGTH // 2), now
            run.save()
            return run
    return None


def _runs(trial: Trial) -> dict[Any, CaseRun]:
    return {(run.case_id, run.arm, run.round): run for run in trial.case_runs.all()}


def _wanted(trial: Trial, runs: Mapping[Any, CaseRun]) -> Iterator[tuple[UUID, Arm, int]]:
    """Each case once on both versions, in an order that tells nothing; if they differ, again."""
    cases = list(Case.objects.filter(playbook=trial.playbook_id).values_list("pk", flat=True))
    pairs = [(case, arm) for case in cases for arm in BOTH]

    def shuffled(pair: tuple[UUID, Arm]) -> bytes:
        return hashlib.sha256(f"{trial.pk}{pair[0]}{pair[1]}".encode()).digest()

    for case, arm in sorted(pairs, key=shuffled):
        yield case, arm, 1
    for case in cases:
        first = [run for arm in BOTH if (run := runs.get((case, arm, 1)))]
        if {run.passed for run in first} == {True, False}:
            for arm in BOTH:
                yield case, arm, 2


def record_answer(report: Outcome, playbook: Playbook) -> None:
    """Judge the notes as the answer to a case, or take the runner's word; then the version.

    In the report's transaction, with the playbook locked. An answer that comes late, or again,
    counts for nothing.
    """
    runs = CaseRun.objects.filter(trial=report.trial_id, trial__status=Trial.Status.GATING)
    run = runs.select_related("case").filter(unit=report.unit, passed=None).first()
    if run is not None:
        success = report.status == Outcome.Status.SUCCESS
        run.passed = is_right(run.case, report.notes) if report.notes.strip() else success
        run.save(update_fields=["passed", "updated_at"])
        decide_gate(playbook)


def is_right(case: Case, answer: str) -> bool:
    """Whether the answer is the case's, by exact comparison: no model judges."""
    sample = Sample(Question("", case.question), case.target)
    feedback = evaluate_sample(MATCHES[case.match], sample, Generation(final_answer=answer))
    return feedback.status == "success"


def decide_gate(playbook: Playbook) -> None:
    """Refuse the version that waits, or begin its trial, once every case is answered."""
    trial = gating_trial(playbook)
    if trial is None:
        return
    if trial.case_runs.exclude(passed=None).count() < len(BOTH) * playbook.cases.count():
        return  # most answers end here
    runs = _runs(trial)
    if any((run := runs.get(one)) is None or run.passed is None for one in _wanted(trial, runs)):
        return
    cases = list(Case.objects.filter(playbook=playbook).select_related("outcome"))
    if not cases:
        begin_unchecked(playbook, "no case is left")
        return
    refused, counted = judge_answers(cases, runs)
    if refused:
        act_on_harm(trial, playbook, reason=f"Rejected before anyone read it: {counted}")
    else:
        begin_trial(trial, playbook, gate=f"Checked: {counted}")


def judge_answers(cases: list[Case], runs: Mapping[Any, CaseRun]) -> tuple[bool, str]:
    """Whether the newest version is refused, and what both answered in words.

    The first answers and the repeated ones have to agree: by the repeated ones alone an agent that
    answers 80 % right refuses 6 % of versions that change nothing, by both 4 % (simulated).
    """
    first_worse, first_gains = _differing(cases, runs, turns=(1,))
    worse, gains = _differing(cases, runs, turns=(1, 2))
    lost = min(len(first_worse) - len(first_gains), len(worse) - len(gains))
    refused = any(case.must_pass for case in worse) or lost >= 1 + math.ceil(len(cases) / 20)
    counted = f"{len(worse)} of {len(cases)} cases that passed now fail, {len(gains)} newly pass."
    return refused, counted


def _differing(
    cases: list[Case], runs: Mapping[Any, CaseRun], *, turns: tuple[int, ...]
) -> tuple[list[Case], list[Case]]:
    """The cases that in all these turns only the stable text passed, and only the newest one.

    A case that was learned from is no gain.
    """

    def passed_only(case: Case, passing: Arm) -> bool:
        told = ((arm, runs.get((case.pk, arm, turn))) for arm in BOTH for turn in turns)
        return all(run is not None and run.passed == (arm == passing) for arm, run in told)

    worse = [case for case in cases if passed_only(case, Arm.STABLE)]
    gains = [case for case in cases if passed_only(case, Arm.NEWEST) and not case.is_taught]
    return worse, gains


def begin_trial(trial: Trial, playbook: Playbook, *, gate: str) -> None:
    """gating → running; without outcomes enough for a trial everybody reads the newest."""
    trial.begin(gate=gate)
    if has_traffic(playbook):
        trial.save()
    else:
        reason = f"{gate} Too few outcomes for a trial."
        end_trial(trial, playbook=playbook, verdict=Trial.Verdict.STOPPED, reason=reason)


def late_gates(now: datetime) -> QuerySet[Playbook]:
    """Playbooks whose newest version has waited for its check for too long."""
    since = now - timedelta(hours=settings.GATE_WAIT_HOURS)
    return Playbook.objects.filter(
        open_trial__status=Trial.Status.GATING, open_trial__created_at__lt=since
    )


def begin_unchecked(playbook: Playbook, why: str = "") -> None:
    """The version goes on trial without its check; the playbook is locked."""
    trial = gating_trial(playbook)
    if trial is not None:
        why = why or f"not answered in {settings.GATE_WAIT_HOURS} hours"
        begin_trial(trial, playbook, gate=f"Not checked: {why}.")


def count_in_trial(report: Outcome, playbook: Playbook) -> None:
    """Count an unsaved report in the trial that it was served by, in at most two queries more.

    In the report's transaction, with the playbook locked. Nothing counts after the end of the
    trial, and one reading counts once; such a report is no evidence.
    """
    if report.trial_id is None:
        return
    trial = RUNNING_TRIAL.first(trial=report.trial_id, unit=report.unit)
    if trial is None or trial.is_counted:  # type: ignore[attr-defined]  # annotated
        report.trial, report.unit, report.arm = None, "", ""
        return
    count_outcomes(trial, playbook=playbook, outcomes=[_counted(report)])
    report.trial_position, report.trial_success = trial.tally.tasks, _counted(report)[1]


def recount_in_trial(outcome: Outcome, playbook: Playbook) -> None:
    """Count the arms of the outcome's trial anew while it runs: each task once, as corrected."""
    trial = outcome.trial
    if trial is None or not trial.is_running:
        return
    trial.stable_tasks = trial.stable_successes = trial.newest_tasks = trial.newest_successes = 0
    trial.bets, trial.clients = {}, {}
    rows = Outcome.objects.filter(trial=trial).order_by("trial_position")
    success = ExpressionWrapper(Q(status=Outcome.Status.SUCCESS), BooleanField())
    rows.order_by().update(trial_success=success)
    counted = rows.only("arm", "status", "client")
    count_outcomes(trial, playbook=playbook, outcomes=map(_counted, counted))


def _counted(row: Outcome) -> tuple[str, bool, str]:
    return row.arm, row.status == Outcome.Status.SUCCESS, row.client


def recent_tasks(playbook: Playbook, *, most: int) -> int:
    """Outcomes of the time that a trial lasts at most that say what they read; up to `most`."""
    recent = Outcome.objects.filter(
        playbook=playbook,
        version_assumed=False,
        job__training=None,
        created_at__gte=database_now() - MAX_AGE,
    )
    return len(recent.values_list("pk", flat=True)[:most])


def has_traffic(playbook: Playbook) -> bool:
    """Whether there are enough recent tasks for a trial to find something."""
    least: int = settings.TRIAL_MIN_TRAFFIC
    return recent_tasks(playbook, most=least) == least
