"""Recomputes trials from their outcomes: counts, evidence and verdict are what these amount to."""

from collections.abc import Iterator
from math import isclose

from evolution.models import Outcome
from playbooks.models import Arm, Trial

COUNTS = ("stable_tasks", "stable_successes", "newest_tasks", "newest_successes", "clients")


def trial_problems(trial: Trial) -> Iterator[str]:
    """What is wrong with a trial, open or ended; nothing if it is sound.

    Ground truth that came after its last outcome may be later than its verdict, which it does not
    change: then only the places of the outcomes are checked.
    """
    again, decided = Trial(control_share=trial.control_share, error=trial.error), 0
    outcomes = list(
        Outcome.objects.filter(trial=trial)
        .order_by("trial_position")
        .only("trial_position", "arm", "status", "client", "created_at", "corrected_at")
    )
    for number, outcome in enumerate(outcomes, start=1):
        if outcome.trial_position != number:
            yield f"its outcome {number} is missing"
            return
        success = outcome.status == Outcome.Status.SUCCESS
        again.count(newest=outcome.arm == Arm.NEWEST, success=success, client=outcome.client)
        decided = decided or (number if _verdict_of(again) else 0)
    corrections = [outcome.corrected_at for outcome in outcomes if outcome.corrected_at]
    if corrections and not trial.is_running and max(corrections) > outcomes[-1].created_at:
        return
    yield from _differences(trial, again)
    if not corrections and 0 < decided < len(outcomes):
        yield f"its outcome {decided} decided it, and {len(outcomes)} were counted"


def _differences(trial: Trial, again: Trial) -> Iterator[str]:
    for name in COUNTS:
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
