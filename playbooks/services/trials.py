"""Trials that people start and end, and what follows from one that found harm."""

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from accounts.services.webhooks import emit_event
from core.audit import record
from core.errors import Conflict, Invalid
from core.security.scopes import Principal
from playbooks.document.state_diff import bullets_from_snapshots, change_state
from playbooks.models import Bullet, Delta, Playbook, Trial, Version
from playbooks.services.history import fetch_bullet
from playbooks.services.loading import load_past, lock_playbook, require_editable, version_of
from playbooks.services.publishing import publish
from playbooks.trials import MAX_AGE, end_trial, open_trial

KEEPS = ("newest", "stable")
BARE_SHARE, MAX_BARE_SHARE = 0.1, 0.5
MAX_TAKEN_BACK, MAX_TRIALS_READ = 20, 10
NEW_TEXTS = (Delta.Type.ADD, Delta.Type.UPDATE, Delta.Type.MERGE)


def start_trial(
    *, playbook: Playbook, by: Principal, kind: str, bullet_id: str = "", share: float | None = None
) -> Trial:
    """Some readings do without a bullet, or without the playbook; evolutions wait meanwhile.

    `share`: of readings without the playbook, 0.1 by default. Raises Invalid, NotFound for the
    bullet, Conflict (`archived`, `trial_open`).
    """
    if kind not in {Trial.Kind.BULLET, Trial.Kind.BARE}:
        raise Invalid.field("kind", "Use bullet or bare; evolutions start trials of versions.")
    is_bare = kind == Trial.Kind.BARE
    if is_bare == bool(bullet_id):
        raise Invalid.field("bullet_id", "Name the bullet to try, and none for a bare trial.")
    if share is not None and not (is_bare and 0 < share <= MAX_BARE_SHARE):
        raise Invalid.field("share", f"For a bare trial send more than 0, up to {MAX_BARE_SHARE}.")
    with transaction.atomic():
        lock_playbook(playbook)
        require_editable(playbook)
        if playbook.open_trial_id is not None:
            raise Conflict("Another trial is open. End it first.", code="trial_open")
        if not is_bare and fetch_bullet(playbook, bullet_id).status != Bullet.Status.ACTIVE:
            raise Invalid.field("bullet_id", "This bullet is not read by agents.")
        current = version_of(playbook, None)
        trial = open_trial(
            playbook=playbook,
            kind=kind,
            stable=current,
            candidate=current,
            started_by=by.user,
            bullet_id=bullet_id,
            control_share=(share or BARE_SHARE) if is_bare else 0.5,
        )
        record(action="start_trial", by=by, subject=playbook, owner=playbook.owner_id, kind=kind)
    return trial


def stop_trial(*, trial: Trial, by: Principal, keep: str = "newest") -> Trial:
    """Everybody reads the newest version from now on, or the stable one in a new version.

    Raises Invalid, and Conflict when the trial has ended, or the playbook is archived.
    """
    if keep not in KEEPS:
        raise Invalid.field("keep", f"Use one of: {', '.join(KEEPS)}.")
    if keep == "stable" and not trial.of_version:
        raise Invalid.field("keep", "Only a trial of a version can be reverted.")
    with transaction.atomic():
        playbook = trial.playbook
        lock_playbook(playbook)
        require_editable(playbook)
        trial.refresh_from_db()
        if not trial.is_open:
            raise Conflict("This trial has already ended.", code="trial_ended")
        word = "Reverted" if keep == "stable" else "Ended"
        reason = f"{word} by a person after {trial.tally.tasks} tasks."
        if keep == "stable":
            _restore(playbook, trial, reason=reason, by=by)
        end_trial(trial, playbook=playbook, verdict=Trial.Verdict.STOPPED, reason=reason)
        record(action="stop_trial", by=by, subject=playbook, owner=playbook.owner_id, keep=keep)
    return trial


def lock_to_publish(playbook: Playbook) -> None:
    """Lock the playbook and read it again; a harmful version is taken back before anything else."""
    lock_playbook(playbook)
    settle_revert(playbook)


def settle_revert(playbook: Playbook) -> Version | None:
    """Publish what the stable version says, if a trial has found harm; the playbook is locked."""
    if playbook.open_trial_id is None:
        return None
    reverting = Trial.objects.filter(playbook=playbook, status=Trial.Status.REVERTING)
    trial = reverting.select_related("stable_version").first()
    if trial is None:
        return None
    made = _restore(playbook, trial, reason=f"Reverted: {trial.reason}")
    end_trial(trial, playbook=playbook, verdict=Trial.Verdict.WORSE, reason=trial.reason)
    return made


def end_old_trial(playbook: Playbook) -> None:
    """The open trial has run for its longest time; the playbook is locked."""
    if playbook.open_trial is not None:
        verdict = Trial.Verdict.NO_DIFFERENCE
        end_trial(playbook.open_trial, playbook=playbook, verdict=verdict)


def old_trials(now: datetime) -> QuerySet[Playbook]:
    """Playbooks whose trial has run for its longest time."""
    return Playbook.objects.filter(
        open_trial__status=Trial.Status.RUNNING, open_trial__created_at__lt=now - MAX_AGE
    )


def _restore(
    playbook: Playbook, trial: Trial, *, reason: str, by: Principal | None = None
) -> Version:
    """A new version that reads as the trial's stable one; votes stay."""
    newest, stable = version_of(playbook, None), trial.stable_version
    loaded, past = load_past(playbook, stable)
    result = change_state(loaded.state, bullets_from_snapshots(loaded.state, past), reason=reason)
    reverted = Version.Reason.REVERTED
    made = publish(playbook, loaded, result, reason=reverted, author=by, always=True).version
    assert made is not None  # noqa: S101 - always=True
    trial.refresh_from_db(fields=["sealed_in"])  # the new version seals its verdict
    trial.newest_version, trial.restored_version = newest, made
    about = {"version": made.number, "to": stable.number}
    record(action="revert_version", by=by, subject=playbook, owner=playbook.owner_id, **about)
    emit_event(
        "version.reverted",
        user_id=playbook.owner_id,
        path=made.get_absolute_url(),
        playbook_id=str(playbook.pk),
        playbook=playbook.name,
        version=made.number,
        reverted_to=stable.number,
    )
    return made


def taken_back_texts(playbook: Playbook) -> tuple[str, ...]:
    """Texts of bullets that trials have taken back, the latest first."""
    found: dict[str, None] = {}
    trials = playbook.trials.exclude(restored_version=None).exclude(newest_version=None)
    tried = trials.values_list("stable_version__number", "newest_version__number")
    for stable, newest in tried[:MAX_TRIALS_READ]:
        deltas = Delta.objects.between(playbook, stable, newest).filter(type__in=NEW_TEXTS)
        texts = deltas.order_by("-version__number", "index")[:MAX_TAKEN_BACK]
        found |= dict.fromkeys(texts.values_list("after__content", flat=True))
    return tuple(found)[:MAX_TAKEN_BACK]
