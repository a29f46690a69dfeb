"""Trials: which arm a reading gets, and how they open, count outcomes and end.

Callers of what writes hold a transaction with the playbook locked.
"""

import hashlib
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.urls import reverse
from django.utils.crypto import salted_hmac

from accounts.models import User
from accounts.services.webhooks import emit_event
from core.audit import record
from core.clock import database_now
from core.errors import Invalid
from core.sql.compiled_queries import CompiledQuery, uuid_param
from playbooks.models import Arm, Playbook, Trial, TrialPolicy, Version

MAX_AGE = timedelta(days=30)
"""The length of a trial, and of the time in which its playbook's traffic is counted."""
ARM_NAMES = {
    Trial.Kind.VERSION: ("", " under version {}"),
    Trial.Kind.BULLET: (" with {}", " without it"),
    Trial.Kind.BARE: (" with the playbook", " without it"),
}
PROVEN = {Trial.Verdict.BETTER: "proven better", Trial.Verdict.NO_DIFFERENCE: "no harm found"}
COIN_SALT = "playbooks.trials.coin"
UNIT_LENGTH = 14
MAX_TASK_KEY = 200
OPEN_TRIAL = CompiledQuery(
    lambda: (
        Trial.objects.open()
        .select_related("stable_version")
        .filter(playbook=uuid_param("playbook"))
    )
)


@dataclass(frozen=True)
class Assignment:
    """The arm of one reading, the unit: reports of one unit count once."""

    trial: Trial
    unit: str
    arm: str
    is_case: bool = False

    @property
    def is_stable(self) -> bool:
        return self.arm == Arm.STABLE


def assign_arm(playbook: Playbook, *, task_key: str = "") -> Assignment | None:
    """The arm that this reading gets; None without an open trial, which costs no query.

    All readings with one `task_key` get the same arm. While harm is being undone everybody gets
    the stable arm, under no unit. Raises Invalid for a key that is too long.
    """
    if len(task_key) > MAX_TASK_KEY:
        raise Invalid.field("task_key", f"Use at most {MAX_TASK_KEY} characters.")
    if playbook.open_trial_id is None:
        return None
    trial = OPEN_TRIAL.first(playbook=playbook.pk)
    if trial is None:
        return None
    if not trial.is_running:
        return Assignment(trial, "", Arm.STABLE)
    text = f"{trial.pk}\n{task_key}" if task_key else secrets.token_hex(UNIT_LENGTH)
    unit = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:UNIT_LENGTH]
    is_stable = _coin(trial, unit) < trial.control_share
    return Assignment(trial, unit, Arm.STABLE if is_stable else Arm.NEWEST)


def _coin(trial: Trial, unit: str) -> float:
    """0 to 1, uniform; whoever chooses a `task_key` cannot foresee it."""
    drawn = salted_hmac(COIN_SALT, f"{trial.pk}:{unit}", algorithm="sha256").digest()
    return int.from_bytes(drawn[:8], "big") / 2**64


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
    _emit("trial.started", playbook, trial)
    return trial


def count_outcomes(
    trial: Trial, *, playbook: Playbook, outcomes: Iterable[tuple[str, bool, str]]
) -> None:
    """Add outcomes (arm, success, client) to the trial, which may end or turn to `reverting`.

    One query; a few more at the end.
    """
    for arm, success, client in outcomes:
        trial.count(newest=arm == Arm.NEWEST, success=success, client=client)
    tally = trial.tally
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
    _emit("trial.ended", playbook, trial, verdict=verdict, reason=trial.reason)
    unharmed = verdict in {Trial.Verdict.BETTER, Trial.Verdict.NO_DIFFERENCE}
    if trial.of_version and unharmed and playbook.current_version is not None:
        stable = trial.accepted_version
        open_version_trial(playbook=playbook, stable=stable, candidate=playbook.current_version)


def stop_open_trial(playbook: Playbook, *, reason: str, only_version: bool = False) -> None:
    """The open trial, if any, has ended without a verdict.

    `only_version`: not one of the owner's, and not one that has found harm.
    """
    rows = Trial.objects.open().filter(playbook=playbook)
    if only_version:
        rows = rows.filter(kind=Trial.Kind.VERSION).exclude(status=Trial.Status.REVERTING)
    trial = rows.first()
    if trial is not None:
        end_trial(trial, playbook=playbook, verdict=Trial.Verdict.STOPPED, reason=reason)


def reason_for(trial: Trial, verdict: str) -> str:
    """The verdict's figures and what they mean, in words."""
    subject = trial.bullet_id or trial.stable_version.number
    newest, stable = (name.format(subject) for name in ARM_NAMES[Trial.Kind(trial.kind)])
    figures = (
        f"{trial.newest_successes} of {trial.newest_tasks} tasks succeeded{newest}, "
        f"{trial.stable_successes} of {trial.stable_tasks}{stable}."
    )
    chance = f"evidence this strong would appear in at most 1 trial in {trial.threshold}."
    match verdict:
        case Trial.Verdict.WORSE:
            return f"{figures} If it were no worse, {chance}"
        case Trial.Verdict.BETTER:
            return f"{figures} If it were no better, {chance}"
        case Trial.Verdict.NO_DIFFERENCE if trial.tally.is_split:
            return f"{figures} One arm was reported more often than it was read: no verdict."
        case Trial.Verdict.NO_DIFFERENCE:
            return f"{figures} No difference was found."
    return figures


def _emit(event: str, playbook: Playbook, trial: Trial, **data: str) -> None:
    emit_event(
        event,
        user_id=playbook.owner_id,
        path=reverse("evolution:evidence", args=[playbook.pk]),
        playbook_id=str(playbook.pk),
        playbook=playbook.name,
        trial_id=str(trial.pk),
        kind=trial.kind,
        **data,
    )


def _point(playbook: Playbook, trial: Trial | None) -> None:
    """The playbook's marker of an open trial; no other column, which may be newer in the row."""
    playbook.open_trial = trial
    Playbook.objects.filter(pk=playbook.pk).update(open_trial=trial)


def version_badges(playbook: Playbook, versions: Iterable[Version]) -> Mapping[int, str]:
    """The badge of each version that an evolution made, by number; one query."""
    rows = playbook.trials.filter(kind=Trial.Kind.VERSION).with_versions()
    trials = list(rows.select_related("halfway_version").defer("halfway_version__text"))
    return {
        version.number: _badge(version.number, trials)
        for version in versions
        if version.reason == Version.Reason.EVOLUTION
    }


def _badge(number: int, trials: Iterable[Trial]) -> str:
    """By the newest trial that says something about this version."""
    for trial in trials:
        last = trial.newest_version.number if trial.newest_version else number
        if not trial.stable_version.number < number <= last:
            continue
        if trial.is_gating:
            return "being checked"
        if trial.is_running:
            return "on trial"
        if trial.restored_version_id or trial.status == Trial.Status.REVERTING:
            return "reverted"
        if trial.verdict == Trial.Verdict.WORSE:
            return "found worse"
        if trial.verdict in PROVEN and number <= trial.accepted_version.number:
            return PROVEN[Trial.Verdict(trial.verdict)]
    return "unproven"
