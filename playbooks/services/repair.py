"""Repairing the current rows from the deltas, and the counters from the votes."""

from dataclasses import replace

from django.db import transaction
from django.db.models import F

from core.errors import Conflict
from playbooks.document.state import (
    RETIRED,
    SNAPSHOT_FIELDS,
    BulletState,
    Snapshot,
    State,
    recount_active,
)
from playbooks.document.state_diff import change_state
from playbooks.document.text import content_hash, number_of
from playbooks.models import Bullet, Playbook, Version
from playbooks.services.loading import load_state, lock_playbook
from playbooks.services.publishing import publish, write_bullets
from playbooks.services.verification import check_rows, check_versions

COMPARED = (*SNAPSHOT_FIELDS, "base_helpful", "base_harmful")


def rebuild_playbook(*, playbook: Playbook, dry_run: bool = False) -> list[str]:
    """Bullet rows, counters, pointer and next number match deltas and votes; a line for each fix.

    The deltas are replayed from version 1. Where votes and counters of the newest version differ,
    the votes win, in a new version. Raises Conflict (`broken_history`) when versions and deltas
    contradict each other, because either may be right. A dry run writes nothing.
    """
    with transaction.atomic():
        lock_playbook(playbook)
        problems, last = check_versions(playbook)
        if problems:
            raise _broken(problems)
        corrections = [
            *_correct_pointers(playbook),
            *_correct_rows(playbook),
            *_correct_hashes(playbook),
        ]
        version = _recount(playbook)
        if version is not None:
            corrections.append(f"counters: recounted from the votes in version {version.number}")
            problems, last = check_versions(playbook)
        if problems := problems + check_rows(playbook, last):
            raise _broken(problems)
        if dry_run:
            transaction.set_rollback(True)
    return corrections


def _broken(problems: list[str]) -> Conflict:
    return Conflict(
        f"The history itself is broken ({len(problems)} problems), so nothing was changed. "
        f"First: {problems[0]}. Restore a backup, or continue with a clone of the playbook.",
        code="broken_history",
    )


def _correct_pointers(playbook: Playbook) -> list[str]:
    """The playbook points at its newest version, and its next number was never used."""
    corrections = []
    newest = playbook.versions.order_by("-number").first()
    if newest is not None and playbook.current_version_id != newest.pk:
        playbook.current_version = newest
        corrections.append(f"playbook: points at version {newest.number} again")
    deltas = playbook.deltas.applied().values_list("bullet_public_id", flat=True).distinct()
    used = {*deltas, *playbook.bullets.values_list("public_id", flat=True)}
    least = max(map(number_of, used), default=0) + 1
    if playbook.next_bullet_number < least:
        corrections.append(f"playbook: next bullet number {playbook.next_bullet_number} → {least}")
        playbook.next_bullet_number = least
    if corrections:
        playbook.save(update_fields=["current_version", "next_bullet_number", "updated_at"])
    return corrections


def _correct_rows(playbook: Playbook) -> list[str]:
    """Every bullet row as its last applied delta left it."""
    loaded = load_state(playbook)
    wanted = _replay_bullets(playbook, loaded.state)
    corrections = [
        line
        for name in sorted(wanted, key=number_of)
        for line in _difference(name, loaded.state.bullets.get(name), wanted[name])
    ]
    write_bullets(playbook, loaded, State(loaded.state.sections, wanted))
    return corrections


def _replay_bullets(playbook: Playbook, state: State) -> dict[str, BulletState]:
    """What the deltas left of each bullet; votes and sources are taken over from the rows.

    A row that no delta explains was never part of the playbook: it is retired.
    """
    snapshots: dict[str, Snapshot] = {}
    bases: dict[str, tuple[int, int]] = {}
    sources: dict[str, dict[str, None]] = {}
    rows = playbook.deltas.exclude(status="rejected").order_by("version__number", "index")
    for name, kind, status, before, after, outcomes in rows.values_list(
        "bullet_public_id", "type", "status", "before", "after", "outcome_ids"
    ):
        if kind in {"ADD", "MERGE"}:
            sources.setdefault(name, {}).update(dict.fromkeys(outcomes))
        if status == "applied" and after is not None:
            first = (after["helpful"], after["harmful"]) if before is None else (0, 0)
            bases.setdefault(name, first)
            snapshots[name] = after
    wanted = {
        name: replace(bullet, status=RETIRED, merged_into="")
        for name, bullet in state.bullets.items()
        if name not in snapshots
    }
    for name, snapshot in snapshots.items():
        known = tuple(sources.get(name, ()))
        bullet = state.bullets.get(name) or BulletState(name, "", "", sources=known)
        kept = {field: snapshot[field] for field in SNAPSHOT_FIELDS}
        base_helpful, base_harmful = bases[name]
        wanted[name] = replace(bullet, **kept, base_helpful=base_helpful, base_harmful=base_harmful)
    return wanted


def _difference(name: str, row: BulletState | None, wanted: BulletState) -> list[str]:
    if row is None:
        return [f"bullet {name}: its row was missing"]
    return [
        f"bullet {name}: {column} {getattr(row, column)!r:.60} → {getattr(wanted, column)!r:.60}"
        for column in COMPARED
        if getattr(row, column) != getattr(wanted, column)
    ]


def _correct_hashes(playbook: Playbook) -> list[str]:
    """Each row's hash is that of its text; exact duplicates are found by it."""
    wrong = [row for row in playbook.bullets.all() if row.content_hash != content_hash(row.content)]
    for row in wrong:
        row.content_hash = content_hash(row.content)
    # First out of each other's way: the unique index is checked row by row.
    playbook.bullets.filter(pk__in=[row.pk for row in wrong]).update(content_hash=F("public_id"))
    Bullet.objects.bulk_update(wrong, ["content_hash"])
    return [f"bullet {row.public_id}: hash of its text" for row in wrong]


def _recount(playbook: Playbook) -> Version | None:
    """A version with recounted counters, when those of the newest version differ."""
    loaded = load_state(playbook)
    wanted = recount_active(loaded.state.bullets)
    result = change_state(loaded.state, wanted, reason="Recounted from the votes.")
    if not result.applied:
        return None
    return publish(playbook, loaded, result, reason=Version.Reason.EDIT).version
