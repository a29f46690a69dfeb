"""Trials open, count outcomes and end. Callers hold a transaction with the playbook locked."""

from collections.abc import Iterable
from datetime import timedelta

from django.conf import settings

from accounts.models import User
from core.audit import record
from core.clock import database_now
from playbooks.models import Arm, Playbook, Trial, TrialPolicy, Version
from playbooks.trial_statistics import TrialTally

MAX_AGE = timedelta(days=30)
"""The length of a trial, and of the time in which its playbook's traffic is counted."""
ARM_NAMES = {
    Trial.Kind.VERSION: ("", "under version {}"),
    Trial.Kind.BULLET: ("with {}", "without it"),
    Trial.Kind.BARE: ("with the playbook", "without it"),
}


def task_limit(kind: str) -> int:
    """The tasks of both arms after which a trial of this kind ends."""
    limit: int = settings.TRIAL_OUTCOMES
    return limit if kind == Trial.Kind.VERSION else 2 * limit


def open_version_trial(
    *, playbook: Playbook, stable: Version, candidate: Version, gated: bool = False
) -> Trial | None:
    """Half of the readings get `stable` from now on; None if there is nothing to compare.

    `gated`: all of them, until the candidate was checked on cases.
    """
    if (
        playbook.trial_policy == TrialPolicy.OFF
        or playbook.open_trial_id is not None
        or stable.text_hash == candidate.text_hash
    ):
        return None
    return open_trial(
        playbook=playbook,
        kind=Trial.Kind.VERSION,
        stable=stable,
        candidate=candidate,
        status=Trial.Status.GATING if gated else Trial.Status.RUNNING,
    )


def open_trial(
    *,
    playbook: Playbook,
    kind: str,
    stable: Version,
    candidate: Version,
    started_by: User | None = None,
    bullet_id: str = "",
    control_share: float = 0.5,
    status: str = Trial.Status.RUNNING,
) -> Trial:
    """A trial; the playbook has none that is open."""
    trial = Trial.objects.create(
        playbook=playbook,
        kind=kind,
        status=status,
        stable_version=stable,
        candidate=candidate,
        bullet_id=bullet_id,
        control_share=control_share,
        error=settings.TRIAL_ERROR,
        outcome_limit=task_limit(kind),
        started_by=started_by,
    )
    _point(playbook, trial)
    return trial


def count_outcome(
    trial: Trial, *, playbook: Playbook, arm: str, success: bool, client: str
) -> None:
    """Add the outcome to the trial, which may end by it or turn to `reverting`; one query.

    A few more at the end.
    """
    _decide(trial, playbook, trial.count(newest=arm == Arm.NEWEST, success=success, client=client))


def recount_outcomes(
    trial: Trial, *, playbook: Playbook, outcomes: Iterable[tuple[str, bool, str]]
) -> None:
    """Count all outcomes (arm, success, client) of a running trial anew: one was corrected."""
    trial.stable_tasks = trial.stable_successes = trial.newest_tasks = trial.newest_successes = 0
    trial.bets, trial.clients = {}, {}
    for arm, success, client in outcomes:
        trial.count(newest=arm == Arm.NEWEST, success=success, client=client)
    _decide(trial, playbook, trial.tally)


def _decide(trial: Trial, playbook: Playbook, tally: TrialTally) -> None:
    if trial.halfway_version_id is None and tally.tasks >= trial.outcome_limit // 2:
        trial.halfway_version_id = playbook.current_version_id
    if tally.is_worse(error=trial.error):
        act_on_harm(trial, playbook, reason=reason_for(trial, Trial.Verdict.WORSE))
    elif tally.is_better(error=trial.error):
        end_trial(trial, playbook=playbook, verdict=Trial.Verdict.BETTER)
    elif tally.tasks >= trial.outcome_limit and not tally.is_split:
        end_trial(trial, playbook=playbook, verdict=Trial.Verdict.NO_DIFFERENCE)
    else:
        trial.save()


def act_on_harm(trial: Trial, playbook: Playbook, *, reason: str) -> None:
    """Take the version back, or end the trial with this verdict where its owner only wants that."""
    if trial.of_version and playbook.trial_policy == TrialPolicy.ACT:
        trial.revert(reason=reason)
        trial.save()
    else:
        end_trial(trial, playbook=playbook, verdict=Trial.Verdict.WORSE, reason=reason)


def end_trial(trial: Trial, *, playbook: Playbook, verdict: str, reason: str = "") -> None:
    """The trial has ended; after one without harm, versions younger than its half get a new one."""
    reason = reason or reason_for(trial, verdict)
    newest = trial.newest_version or playbook.current_version
    trial.end(verdict=verdict, reason=reason, newest=newest, now=database_now())
    trial.save()
    _point(playbook, None)
    record(action="end_trial", by=None, subject=playbook, owner=playbook.owner_id, verdict=verdict)
    unharmed = verdict in {Trial.Verdict.BETTER, Trial.Verdict.NO_DIFFERENCE}
    if trial.of_version and unharmed and playbook.current_version is not None:
        stable = trial.accepted_version
        open_version_trial(playbook=playbook, stable=stable, candidate=playbook.current_version)


def end_trial_for_change(playbook: Playbook, version: Version) -> None:
    """A person's `version` reaches everybody at once, so the open trial has ended."""
    trial = Trial.objects.open().filter(playbook=playbook).first()
    if trial is not None:
        reason = f"Ended by version {version.number}, which a person made."
        end_trial(trial, playbook=playbook, verdict=Trial.Verdict.STOPPED, reason=reason)


def end_version_trial(playbook: Playbook, *, reason: str) -> None:
    """The running trial of a version, if any, has ended without a verdict."""
    waiting = (Trial.Status.GATING, Trial.Status.RUNNING)
    running = Trial.objects.filter(playbook=playbook, status__in=waiting)
    trial = running.filter(kind=Trial.Kind.VERSION).first()
    if trial is not None:
        end_trial(trial, playbook=playbook, verdict=Trial.Verdict.STOPPED, reason=reason)


def reason_for(trial: Trial, verdict: str) -> str:
    """The verdict's figures and what they mean, in words."""
    newest, stable = (name.format(_subject(trial)) for name in ARM_NAMES[Trial.Kind(trial.kind)])
    figures = (
        f"{trial.newest_successes} of {trial.newest_tasks} tasks succeeded{_led(newest)}, "
        f"{trial.stable_successes} of {trial.stable_tasks}{_led(stable)}."
    )
    chance = f"such evidence would come in at most 1 trial of {trial.threshold}."
    match verdict:
        case Trial.Verdict.WORSE:
            return f"{figures} Were it no worse, {chance}"
        case Trial.Verdict.BETTER:
            return f"{figures} Were it no better, {chance}"
        case Trial.Verdict.NO_DIFFERENCE if trial.tally.is_split:
            return f"{figures} One arm was reported more often than it was read: cannot tell."
        case Trial.Verdict.NO_DIFFERENCE:
            return f"{figures} No difference was proven."
    return figures


def _subject(trial: Trial) -> str:
    return trial.bullet_id if trial.bullet_id else str(trial.stable_version.number)


def _led(text: str) -> str:
    return f" {text}" if text else ""


def _point(playbook: Playbook, trial: Trial | None) -> None:
    """The playbook's marker of an open trial; no other column, which may be newer in the row."""
    playbook.open_trial = trial
    Playbook.objects.filter(pk=playbook.pk).update(open_trial=trial)
