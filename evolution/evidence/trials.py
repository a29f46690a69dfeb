"""Trials for people: one sentence, and the success rate of both arms over time."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from core.charts import SMALL
from evolution.models import Outcome
from playbooks.models import Arm, Playbook, Trial
from playbooks.trial_statistics import Counts

MOST_STEPS = 40
HELPS = {
    Trial.Verdict.BETTER: "{} helps",
    Trial.Verdict.WORSE: "{} does harm",
    Trial.Verdict.NO_DIFFERENCE: "No clear result on whether {} helps",
    Trial.Verdict.STOPPED: "The trial of {} was stopped",
}
POWER = {
    Trial.Kind.VERSION: "A trial catches a version that is 40 points worse nearly every time, 20 "
    "points in 8 of 10, 10 points in 4 of 10. One that is no worse is reverted in at most 1 "
    "of {}.",
    Trial.Kind.BULLET: "A trial of 400 tasks detects a bullet worth 10 points in 6 of 10 cases, "
    "one worth 5 points in 1 of 4; otherwise it is inconclusive. One without effect is called "
    "helpful in at most 1 of {}.",
    Trial.Kind.BARE: "If 80% of tasks succeed with the playbook and 40% without, about 80 tasks "
    "prove it; small differences are not detected.",
}


@dataclass(frozen=True)
class ArmCurve:
    """One arm: `line` and `band` (its 95 % interval) are SVG paths over the trial's tasks."""

    arm: str
    label: str
    rate: Counts
    line: str
    band: str


def describe_trial(trial: Trial) -> str:
    """What is known, in one sentence or two."""
    verdict, tasks = trial.verdict, trial.tally.tasks
    number = trial.newest.number if trial.newest else trial.candidate.number
    counted = f"{tasks} task{'' if tasks == 1 else 's'}"
    if not trial.of_version:
        subject = trial.bullet_id or "the playbook"
        if trial.is_running:
            return f"{_upper(subject)} is on trial: {counted}, no result yet."
        return f"{_upper(HELPS[Trial.Verdict(verdict)].format(subject))}. {trial.reason}"
    if trial.is_gating:
        stable = trial.stable_version.number
        return f"Version {number} is being checked on cases; everybody reads version {stable}."
    if trial.is_running:
        stable = trial.stable_version.number
        found = f"{counted}, no harm found yet"
        return f"Version {number} is on trial against version {stable}: {found}."
    if trial.restored_version_id or trial.is_open:
        return f"Version {number} was reverted: {trial.reason}"
    said = {
        Trial.Verdict.WORSE: f"Version {number} is worse, and was kept as you chose",
        Trial.Verdict.BETTER: f"Version {trial.accepted_version.number} is proven better",
        Trial.Verdict.NO_DIFFERENCE: f"No harm was found in version {number}",
        Trial.Verdict.STOPPED: f"The trial of version {number} was stopped",
    }
    return f"{said[Trial.Verdict(verdict)]}. {trial.reason}"


def describe_without_trial(playbook: Playbook) -> str:
    """What agents read, and when trials begin."""
    number = playbook.current_version.number if playbook.current_version else 0
    return (
        f"All agents read version {number}, which is unproven. New versions go on trial once "
        f"{settings.TRIAL_MIN_TRAFFIC} outcomes with a serving_id are reported within 30 days."
    )


def power_of(kind: str) -> str:
    """What a trial of this kind can find, by simulation."""
    return POWER[Trial.Kind(kind)].format(round(1 / settings.TRIAL_ERROR))


def arm_curves(trial: Trial) -> list[ArmCurve]:
    """Both arms with their rates so far, the newest first; one without a task has no curve."""
    rows = Outcome.objects.filter(trial=trial).order_by("trial_position")
    told = list(rows.values_list("arm", "status"))
    found = (_curve(trial, arm, told) for arm in (Arm.NEWEST, Arm.STABLE))
    return [curve for curve in found if curve is not None]


def _curve(trial: Trial, arm: str, told: Sequence[tuple[str, str]]) -> ArmCurve | None:
    """The rate after each of the arm's tasks, at so many of them as the picture can show."""
    steps: list[tuple[float, Counts]] = []
    counts = Counts()
    for position, (which, status) in enumerate(told, start=1):
        if which == arm:
            counts = counts.plus(status == Outcome.Status.SUCCESS)
            steps.append((SMALL.x(position / len(told)), counts))
    if not steps:
        return None
    every = -(-len(steps) // MOST_STEPS)
    steps = [*steps[:-1:every], steps[-1]]
    band = [(x, rate.high) for x, rate in steps] + [(x, rate.low) for x, rate in reversed(steps)]
    line = [(x, rate.share) for x, rate in steps]
    return ArmCurve(arm, _label(trial, arm), steps[-1][1], _path(line), f"{_path(band)}Z")


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.2f} {SMALL.y(share):.2f}" for x, share in points)


def _label(trial: Trial, arm: str) -> str:
    if trial.of_version:
        version = trial.newest if arm == Arm.NEWEST else trial.stable_version
        return f"Version {version.number if version else ''}"
    subject = trial.bullet_id or "the playbook"
    return f"With {subject}" if arm == Arm.NEWEST else "Without it"


def _upper(text: str) -> str:
    """The first letter in upper case, unless it begins an id."""
    return text[:1].upper() + text[1:] if text.split(" ")[0].isalpha() else text
