"""Writing a judged result: a version, its deltas, the bullets and their votes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Count, F, Q, Sum
from django.utils import timezone

from accounts.models import User
from billing.limits.plan_limits import check_storage_limits
from core.errors import AceError, Conflict
from core.security.scopes import Principal
from core.sql.querysets import is_uuid
from playbooks.document.budget import collapses
from playbooks.document.deltas import apply_operations, new_texts
from playbooks.document.operations import Operation, Policy, Provenance, Record, Result
from playbooks.document.review_rule import Review
from playbooks.document.state import ACTIVE, MERGED, RETIRED, BulletState, State, to_document_bullet
from playbooks.document.text import (
    Document,
    agent_view,
    amend,
    content_hash,
    estimate_tokens,
    render,
    text_hash,
)
from playbooks.models import Bullet, Delta, Playbook, Version, Vote
from playbooks.review.queue import provenance_of, review_rule_for, update_review_queue
from playbooks.services.loading import (
    PLAIN_COLUMNS,
    LoadedPlaybook,
    load_part,
    load_state,
    named_bullet_ids,
    with_sources,
)
from playbooks.services.seals import seal_version
from playbooks.trials import stop_open_trial

P = ParamSpec("P")
T = TypeVar("T")
MACHINE_REASONS = (Version.Reason.EVOLUTION, Version.Reason.REVERTED)
GUARDED = timedelta(days=7)
"""What machines remove in this time counts together."""
CONFLICT_FIELDS = ("content", "section", "status")
OTHER_COLUMNS = ("section", "content_hash", "merged_into", "metadata", "updated_at")


class CollapseGuard(AceError):
    """A machine-made version would lose more than 20 % of the bullets or of their tokens."""

    code = "collapse_guard"
    status = 409

    def __init__(self) -> None:
        super().__init__(
            "This evolution would remove more than 20% of the playbook, so it was rejected. "
            "Remove wrong bullets by hand, then run it again; the outcomes are kept."
        )


@dataclass(frozen=True)
class Publication:
    """`version` is None when no operation was applied; `deltas` has one row for each operation."""

    version: Version | None
    deltas: list[Delta]


@dataclass(frozen=True)
class Judged:
    """Operations judged for a playbook at `revision`, and who makes them."""

    loaded: LoadedPlaybook
    result: Result
    revision: tuple[Any, ...]
    reason: str
    author: Principal | None
    job_id: UUID | None
    provenance: Provenance


def judge_deltas(
    *,
    playbook: Playbook,
    operations: Sequence[Operation],
    reason: str,
    author: Principal | None = None,
    job_id: UUID | None = None,
    base: Version | None = None,
    machine: bool,
    max_adds: Mapping[str, int] | None = None,
    uses: Mapping[str, int] | None = None,
    provenance: Provenance = Provenance(),  # noqa: B008 - frozen
) -> Judged:
    """What the operations would make of the playbook; writes nothing.

    `base` is the version that they were made for (None: the current one), `max_adds` how many new
    bullets each outcome may bring (None: any). Raises CollapseGuard.
    """
    revision = _revision_of(playbook)
    operations = [_canonical(op) for op in operations]
    by_credential = author is not None and not author.is_person
    policy = Policy(
        machine=machine,
        by_credential=by_credential,
        changed_since_base=_changed_since(playbook, base),
        max_adds=max_adds,
        token_budget=playbook.token_budget,
        max_bytes=settings.MAX_PLAYBOOK_BYTES,
        uses=uses or {},
        review=review_rule_for(playbook, provenance, author if by_credential else None)
        if machine or by_credential
        else Review(),
        provenance=provenance,
    )
    named = named_bullet_ids(operations)
    if machine:
        loaded = load_state(playbook, touching=named)
        loaded = with_sources(playbook, loaded, named, by_day=bool(provenance.mark))
    else:
        loaded = load_part(playbook, named, **new_texts(operations))
    result = apply_operations(loaded.state, operations, policy)
    if machine and collapses(loaded.state, result.state):
        raise CollapseGuard
    if machine and collapses(_a_week_ago(playbook, loaded.state), result.state):
        result = apply_operations(loaded.state, operations, replace(policy, may_remove=False))
    return Judged(loaded, result, revision, reason, author, job_id, provenance)


def _revision_of(playbook: Playbook) -> tuple[Any, ...]:
    """Differs whenever anything changed that a judgement rests on.

    Who changes bullets, votes, cases, decisions or settings sets the playbook's `updated_at`.
    """
    return playbook.current_version_id, playbook.updated_at


def at_once(prepare: Callable[P, Callable[[], T]]) -> Callable[P, T]:
    """The service that prepares and then writes; REST with an Idempotency-Key does so apart."""
    return lambda *args, **kwargs: prepare(*args, **kwargs)()


def judge_unlocked(judge: Callable[[], Judged]) -> Judged | None:
    """Judge before the playbook is locked: on SQLite all other writers would wait meanwhile.

    None where that failed, perhaps on rows of two states: publish_deltas judges again.
    """
    try:
        return judge()
    except (AceError, LookupError):
        return None


def publish_deltas(
    judge: Callable[[], Judged], judged: Judged | None = None, *, playbook: Playbook
) -> Publication:
    """The valid operations become a new version; every judged one is a Delta row.

    Call it in the transaction that has locked the playbook row. `judge` is asked when the playbook
    is no longer as it was `judged`. Raises Conflict when another version was published meanwhile;
    nothing is written then.
    """
    if judged is None or judged.revision != _revision_of(playbook):
        judged = judge()
    return publish(
        playbook,
        judged.loaded,
        judged.result,
        reason=judged.reason,
        author=judged.author,
        job_id=judged.job_id,
        provenance=judged.provenance,
    )


def _a_week_ago(playbook: Playbook, state: State) -> State:
    """The state with what machines removed in the last week, but for want of room."""
    rows = playbook.deltas.applied().filter(type=Delta.Type.REMOVE, job_id__isnull=False)
    recent = rows.filter(created_at__gt=timezone.now() - GUARDED).exclude(reason_code="budget")
    names = set(recent.values_list("bullet_public_id", flat=True))
    gone = {name: b for name in names if (b := state.bullets[name]).status == RETIRED}
    back = {name: replace(bullet, status=ACTIVE) for name, bullet in gone.items()}
    return replace(state, bullets={**state.bullets, **back})


def _canonical(op: Operation) -> Operation:
    """The operation with outcome ids in the form of votes; anything but a UUID is dropped."""
    found = [UUID(text) for text in op.outcome_ids if is_uuid(text)]
    return replace(op, outcome_ids=tuple(map(str, found)), source=op.source or "machine")


def _changed_since(playbook: Playbook, base: Version | None) -> frozenset[str]:
    """Bullets whose text, section or status changed after `base`."""
    if base is None or base.pk == playbook.current_version_id:
        return frozenset()
    rows = Delta.objects.between(playbook, base.number)
    return frozenset(
        public_id
        for public_id, before, after in rows.values_list("bullet_public_id", "before", "after")
        if not before or not after or any(before[name] != after[name] for name in CONFLICT_FIELDS)
    )


def publish(
    playbook: Playbook,
    loaded: LoadedPlaybook,
    result: Result,
    *,
    reason: str,
    author: Principal | None = None,
    job_id: UUID | None = None,
    always: bool = False,
    provenance: Provenance = Provenance(),  # noqa: B008 - frozen
) -> Publication:
    """Write the result; `always` makes a version even when nothing was applied.

    The version of a job is sealed by its caller, once its outcomes are processed.
    """
    try:
        # A savepoint: a lost race leaves the caller's transaction usable and nothing half-written.
        with transaction.atomic():
            version = None
            if result.applied or always:
                text = _amended_text(playbook, loaded.state, result.state)
                made = Version(text=text, reason=reason, job_id=job_id).set_author(author)
                version = _add_version(playbook, made, result)
                if author is not None and playbook.owner is not None:
                    _check_storage(playbook.owner)
            write_bullets(playbook, loaded, result.state, provenance.sources)
            deltas = _deltas(playbook, version, result.records, author, job_id, provenance)
            Delta.objects.bulk_create(deltas)
            update_review_queue(playbook, deltas)
            if version is not None and job_id is None:
                seal_version(version, deltas)
    except IntegrityError:
        raise Conflict("This playbook was changed at the same time. Try again.") from None
    return Publication(version, deltas)


def _amended_text(playbook: Playbook, before: State, after: State) -> str:
    """The text of the current version, if there is one, with what differs between the states."""
    version = playbook.current_version
    text = version.text if version else render(Document(after.sections, ()))
    changed = [b for b in after.bullets.values() if before.bullets.get(b.id) is not b]
    old = [before.bullets[b.id] for b in changed if b.id in before.bullets]
    gone, new = ([to_document_bullet(b) for b in found if b.is_active] for found in (old, changed))
    return amend(text, after.sections, gone, new)


def _add_version(playbook: Playbook, version: Version, result: Result) -> Version:
    """The version gets the next number, and the playbook points at it."""
    parent, view = playbook.current_version, agent_view(version.text)
    version.playbook, version.parent = playbook, parent
    version.number = parent.number + 1 if parent else 1
    version.text_hash, version.token_count = text_hash(view), estimate_tokens(view)
    version.bullet_count = version.text.count("\n[")
    version.diff_summary = summary_of(result.applied)
    version.save()
    playbook.current_version = version
    playbook.next_bullet_number = result.state.next_number
    playbook.stored_bytes += len(version.text.encode())
    playbook.starter_edited |= playbook.is_starter and version.author is not None
    changed = ("current_version", "next_bullet_number", "stored_bytes", "starter_edited")
    playbook.save(update_fields=[*changed, "updated_at"])
    if playbook.open_trial_id is not None and version.reason not in MACHINE_REASONS:
        reason = f"Ended by version {version.number}, which a person made."
        stop_open_trial(playbook, reason=reason)
    return version


def _check_storage(owner: User) -> None:
    """Raise StorageLimitReached; evolutions are limited on their own and not refused here."""
    rows = Playbook.objects.filter(owner=owner).order_by()
    stored = rows.aggregate(
        playbooks=Count("pk"), versions=Sum("current_version__number"), size=Sum("stored_bytes")
    )
    check_storage_limits(user=owner, **stored)


def summary_of(records: Iterable[Record]) -> dict[str, int]:
    """How many bullets were added (or came back), updated, removed, merged away, and tagged."""
    counts = dict.fromkeys(("added", "updated", "removed", "merged", "tagged"), 0)
    for record in records:
        name = SUMMARY[record.type]
        if record.type == "MERGE" and (record.after or {}).get("status") != MERGED:
            name = "updated"
        counts[name] += 1
    return counts


SUMMARY = {
    **{"ADD": "added", "RESTORE": "added", "UPDATE": "updated", "PIN": "updated"},
    **{"REMOVE": "removed", "MERGE": "merged", "TAG": "tagged"},
}


def _deltas(
    playbook: Playbook,
    version: Version | None,
    records: Iterable[Record],
    author: Principal | None,
    job_id: UUID | None,
    provenance: Provenance,
) -> list[Delta]:
    deltas = []
    for record in records:
        columns = vars(record) | {"outcome_ids": list(record.outcome_ids)}
        delta = Delta(bullet_public_id=columns.pop("bullet_id"), **columns)
        delta.version, delta.playbook, delta.job_id = version, playbook, job_id
        delta.provenance = provenance_of(provenance, record.outcome_ids)
        deltas.append(delta.set_author(author))
    return deltas


def write_bullets(
    playbook: Playbook,
    loaded: LoadedPlaybook,
    state: State,
    reporters: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the rows that differ, in few queries; new ones after the rest released their texts.

    `reporters`: who reported each outcome, kept with its new votes.
    """
    before = loaded.state.bullets
    changed = [b for b in state.bullets.values() if (was := before.get(b.id)) is not b and was != b]
    known = loaded.bullets
    rows = {
        b.id: Bullet(playbook=playbook, public_id=b.id, **known[b.id]._asdict())
        if b.id in known
        else Bullet(playbook=playbook, public_id=b.id)
        for b in changed
    }
    old = {name: row.content_hash for name, row in rows.items()}
    for bullet in changed:
        row = rows[bullet.id]
        _fill(row, bullet, loaded)
        if (was := before.get(bullet.id)) is None or was.content != bullet.content:
            row.content_hash = content_hash(bullet.content)
        survivor = rows.get(bullet.merged_into) or known.get(bullet.merged_into)
        row.merged_into_id = survivor.pk if survivor else None
    _release_texts(changed, before, rows, old)
    # One INSERT that updates what is there: bulk_update compiles a CASE for each row and column.
    Bullet.objects.bulk_create(
        [rows[b.id] for b in sorted(changed, key=lambda bullet: bullet.id not in known)],
        update_conflicts=True,
        unique_fields=["pk"],
        update_fields=[*PLAIN_COLUMNS, *OTHER_COLUMNS],
    )
    _write_votes(changed, before, rows, reporters)


def _fill(row: Bullet, bullet: BulletState, loaded: LoadedPlaybook) -> None:
    row.section = loaded.sections[bullet.section]
    for name in PLAIN_COLUMNS:
        setattr(row, name, getattr(bullet, name))
    facts: dict[str, Any] = {"outcome_ids": list(bullet.sources), "retired_for": bullet.retired_for}
    if list(bullet.former) != row.metadata.get("former", [0, 0]):
        facts |= {"former": list(bullet.former), "reworded_at": timezone.now().isoformat()}
    row.metadata = {name: value for name, value in {**row.metadata, **facts}.items() if value}
    row.updated_at = timezone.now()


def _release_texts(
    changed: Iterable[BulletState],
    before: Mapping[str, BulletState],
    rows: Mapping[str, Bullet],
    old: Mapping[str, str],
) -> None:
    """Release the texts that another bullet takes over in this write.

    The unique index on active texts is checked row by row, so bullets that swap texts would meet
    each other half-way; a public id cannot be the hash of anything.
    """
    claimed = {rows[b.id].content_hash for b in changed if b.is_active}
    holders = [
        rows[b.id].pk
        for b in changed
        if b.id in before
        and before[b.id].is_active
        and old[b.id] in claimed
        and (not b.is_active or rows[b.id].content_hash != old[b.id])
    ]
    if holders:
        Bullet.objects.filter(pk__in=holders).update(content_hash=F("public_id"))


def _write_votes(
    changed: Iterable[BulletState],
    before: Mapping[str, BulletState],
    rows: Mapping[str, Bullet],
    reporters: Mapping[str, str],
) -> None:
    """New votes are rows; a vote that replaces one changes its row."""
    new: list[Vote] = []
    for bullet in changed:
        cast = before[bullet.id].votes if bullet.id in before else {}
        for (outcome, source), tag in bullet.votes.items():
            if (outcome, source) not in cast:
                vote = Vote(bullet=rows[bullet.id], outcome_id=outcome, source=source, tag=tag)
                vote.reporter = reporters.get(outcome or "", "")
                new.append(vote)
            elif cast[outcome, source] != tag:
                same = Q(bullet=rows[bullet.id], outcome_id=outcome, source=source)
                Vote.objects.filter(same).update(tag=tag, updated_at=timezone.now())
    Vote.objects.bulk_create(new)
