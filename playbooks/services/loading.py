"""Loading a playbook's rows as values: sections, state, versions; and locking it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Q, QuerySet

from core.errors import Conflict, NotFound
from core.security.scopes import Principal
from playbooks.document.operations import Operation, Record
from playbooks.document.sections import Section
from playbooks.document.similarity import with_same_advice
from playbooks.document.state import (
    RETIRED,
    UNKNOWN,
    BulletState,
    Snapshot,
    State,
    VoteKey,
    closure,
    merge_survivor,
)
from playbooks.document.text import Document, content_hash, is_bullet_id, parse
from playbooks.models import Bullet, Delta, Playbook, PlaybookQuerySet, Version, Vote
from playbooks.models import Section as SectionRow
from playbooks.review.queue import TEXT_CHANGES

PLAIN_COLUMNS = (
    *("content", "revision", "status", "pinned", "helpful", "harmful", "neutral"),
    *("base_helpful", "base_harmful"),
)
"""Columns of a Bullet that are fields of its BulletState as they are."""


MANY = 1_000
"""Bullets from which on it is quicker to load all, and no database refuses the list."""


class BulletRow(NamedTuple):
    """The columns of a Bullet that its BulletState does not have."""

    pk: UUID
    content_hash: str
    metadata: dict[str, Any]


Past = Mapping[str, Snapshot | None]
"""Bullets as they once were; None for one that did not exist yet."""


@dataclass(frozen=True)
class LoadedPlaybook:
    """The state, and the rows that it came from, by section key and by public id."""

    state: State
    sections: dict[str, SectionRow]
    bullets: dict[str, BulletRow]


def lock_playbook(playbook: Playbook) -> None:
    """Lock the row until the caller's transaction ends, and read it again.

    SQLite has no row locks; there the unique version number refuses the second writer.
    """
    rows = Playbook.objects.select_related("owner").select_for_update(of=("self",), no_key=True)
    known: Version | None = playbook._state.fields_cache.get("current_version")
    try:
        playbook.refresh_from_db(from_queryset=rows)
    except Playbook.DoesNotExist:
        raise NotFound("playbook", PlaybookQuerySet.missing_hint) from None
    if known is not None and known.seal and known.pk == playbook.current_version_id:
        playbook.current_version = known  # a sealed version never changes


def require_editable(playbook: Playbook, by: Principal | None = None) -> None:
    """Raise Conflict for a playbook that takes no edits: archived, or a starter unless of staff."""
    if playbook.is_archived:
        raise Conflict("This playbook is archived. Restore it to change it.", code="archived")
    if playbook.is_starter and not (by and by.user.is_staff):
        raise Conflict("Starters are read-only. Clone it to edit.", code="starter")


def sections_of(playbook: Playbook) -> tuple[Section, ...]:
    return tuple(_section(row) for row in playbook.sections.all())


def _section(row: SectionRow) -> Section:
    return Section(row.key, row.title, row.slug, tuple(row.aliases))


def version_of(playbook: Playbook, number: int | None) -> Version:
    """The version with this number, the current one for None; NotFound when there is none."""
    if number is None and playbook.current_version is not None:
        return playbook.current_version
    # Without LIMIT, for which PostgreSQL reads the table: it expects many with both values.
    for version in playbook.versions.filter(number=number).order_by() if number else ():
        return version
    raise NotFound("version", "List the versions to find its number.", given="number")


def document_of(version: Version, *, sections: Iterable[Section] | None = None) -> Document:
    """The document of a version's stored text."""
    known = sections_of(version.playbook) if sections is None else tuple(sections)
    return parse(version.text, sections=known)


def in_this_wording(playbook: Playbook, document: Document) -> Document:
    """The document with the votes that bullets got since the last change of their meaning."""
    rows = playbook.bullets.filter(metadata__has_key="former")
    former = {name: kept["former"] for name, kept in rows.values_list("public_id", "metadata")}
    bullets = (
        replace(b, helpful=max(0, b.helpful - old[0]), harmful=max(0, b.harmful - old[1]))
        if (old := former.get(b.id))
        else b
        for b in document.bullets
    )
    return Document(document.sections, tuple(bullets)) if former else document


def load_state(playbook: Playbook, *, touching: Iterable[str] | None = None) -> LoadedPlaybook:
    """The playbook as its rows are now; votes of the bullets `touching` names, None: of all."""
    return _load(playbook, playbook.bullets.all(), touching)


def load_part(
    playbook: Playbook, names: Iterable[str], *, texts: Iterable[str] = (), adds: Iterable[str] = ()
) -> LoadedPlaybook:
    """Of the state only what operations on these bullets, or with these texts, can touch.

    The named bullets, those with the text of one of `texts` or of a named one that is retired, or
    with the advice of one of `adds`, and all that is merged with these; with all of their votes.
    """
    wanted, hashes = set(names), set(map(content_hash, texts))
    if len(wanted) > MANY:
        return load_state(playbook)
    rows, adds = playbook.bullets.order_by(), set(adds)
    if adds:
        wanted |= set(with_same_advice(rows.values_list("public_id", "content"), adds))
    found = rows.filter(Q(public_id__in=wanted) | Q(content_hash__in=hashes) | Q(status="merged"))
    known = list(found.values_list("public_id", "content_hash", "status", "merged_into__public_id"))
    if away := {text for name, text, status, _ in known if name in wanted and status == RETIRED}:
        wanted |= set(rows.filter(content_hash__in=away).values_list("public_id", flat=True))
    wanted |= {name for name, text, *_ in known if text in hashes}
    family = _with_merged({name: into for name, *_, into in known if into}, wanted)
    loaded = _load(playbook, playbook.bullets.filter(public_id__in=family), family)
    text = playbook.current_version.text if playbook.current_version else ""
    return replace(loaded, state=replace(loaded.state, text=text))


def _load(
    playbook: Playbook, bullet_rows: QuerySet[Bullet], touching: Iterable[str] | None
) -> LoadedPlaybook:
    sections = {row.key: row for row in playbook.sections.all()}
    # Values: a thousand instances of the model would take three times as long.
    others = ("public_id", "section__key", "merged_into", *PLAIN_COLUMNS)
    found = list(bullet_rows.values_list(*BulletRow._fields, *others))
    names = {pk: public_id for pk, _, _, public_id, *_ in found}
    rows, bullets = {}, {}
    for pk, text_hash, metadata, public_id, section, merged_into, *plain in found:
        rows[public_id] = BulletRow(pk, text_hash, metadata)
        bullets[public_id] = BulletState(
            **dict(zip(PLAIN_COLUMNS, plain, strict=True)),
            id=public_id,
            section=section,
            merged_into=names[merged_into] if merged_into else "",
            sources=tuple(metadata.get("outcome_ids", ())),
            former=tuple(metadata.get("former", (0, 0))),
            retired_for=metadata.get("retired_for", ""),
        )
    wanted = None if touching is None else _with_merged(_redirects(bullets), touching)
    for public_id, votes in _votes(playbook, names, wanted).items():
        bullets[public_id] = replace(bullets[public_id], votes=votes)
    state = State(
        tuple(_section(row) for row in sections.values()), bullets, playbook.next_bullet_number
    )
    return LoadedPlaybook(state, sections, rows)


def named_bullet_ids(operations: Iterable[Operation]) -> set[str]:
    """Every bullet id that the operations name; what is none may be no text for a database."""
    return {name for op in operations for name in (op.id, *op.ids) if is_bullet_id(name)}


def with_sources(
    playbook: Playbook, loaded: LoadedPlaybook, names: Iterable[str], *, by_day: bool
) -> LoadedPlaybook:
    """The state with who taught the named bullets, and who called any bullet harmful.

    `by_day`: one source's reports of different days are told apart.
    """
    bullets = dict(loaded.state.bullets)
    ids = {row.pk: public_id for public_id, row in loaded.bullets.items()}
    votes = Vote.objects.filter(bullet__playbook=playbook, tag=Vote.Tag.HARMFUL)
    for row, outcome, source, reporter, at in votes.values_list(
        "bullet_id", "outcome_id", "source", "reporter", "created_at"
    ):
        reworded = loaded.bullets[ids[row]].metadata.get("reworded_at")
        if reworded and at <= datetime.fromisoformat(reworded):
            continue
        who = source if source.startswith("user:") else reporter
        who = f"{who}{day_mark(at) if by_day else ''}" if who else f"{UNKNOWN}{outcome}"
        bullet = merge_survivor(bullets, ids[row])
        for name in {ids[row], bullet.id} if bullet else {ids[row]}:
            known = bullets[name].harmful_by
            bullets[name] = replace(bullets[name], harmful_by=known | {who})
    texts = playbook.deltas.applied().filter(type__in=TEXT_CHANGES, job_id__isnull=False)
    texts = texts.filter(bullet_public_id__in=_with_merged(_redirects(bullets), names))
    for name, kept, at in texts.values_list("bullet_public_id", "provenance", "created_at"):
        day = day_mark(at) if by_day else ""
        taught = {f"{who}{day}" for who in kept.get("sources", ())}
        bullets[name] = replace(bullets[name], taught_by=bullets[name].taught_by | taught)
    return replace(loaded, state=replace(loaded.state, bullets=bullets))


def day_mark(at: datetime) -> str:
    """Tells reports of one source on different days (UTC) apart."""
    return f"@{at:%Y-%m-%d}"


def _redirects(bullets: Mapping[str, BulletState]) -> dict[str, str]:
    return {bullet.id: bullet.merged_into for bullet in bullets.values() if bullet.merged_into}


def _with_merged(redirects: Mapping[str, str], names: Iterable[str]) -> set[str]:
    """The bullets behind these names, and all that was merged into them."""
    merged: dict[str, list[str]] = {}
    for name, survivor in redirects.items():
        merged.setdefault(survivor, []).append(name)
    found: set[str] = set()
    for name in names:
        while name in redirects:
            name = redirects[name]
        found |= set(closure(merged, name))
    return found


def _votes(
    playbook: Playbook, names: Mapping[UUID, str], wanted: set[str] | None
) -> dict[str, dict[VoteKey, str]]:
    if wanted is None:
        rows = Vote.objects.filter(bullet__playbook=playbook)
    else:
        rows = Vote.objects.filter(bullet__in=[pk for pk, name in names.items() if name in wanted])
    found: dict[str, dict[VoteKey, str]] = {}
    for bullet, outcome, source, tag in rows.values_list(
        "bullet_id", "outcome_id", "source", "tag"
    ):
        found.setdefault(names[bullet], {})[(str(outcome) if outcome else None, source)] = tag
    return found


def record_of(delta: Delta) -> Record:
    """The row as a value of the pure rules."""
    names = ("index", "type", "before", "after", "reason", "status", "reason_code")
    values: dict[str, Any] = {name: getattr(delta, name) for name in names}
    return Record(bullet_id=delta.bullet_public_id, outcome_ids=tuple(delta.outcome_ids), **values)


def load_past(playbook: Playbook, version: Version) -> tuple[LoadedPlaybook, Past]:
    """The state, and its bullets as they were at that version.

    Where little happened since, both only of what was changed: by what each bullet's first delta
    since then found. Else by what its last delta until then left.
    """
    newest = version_of(playbook, None).number
    texts = Delta.objects.exclude(type=Delta.Type.TAG)
    if newest - version.number <= version.number + version.bullet_count:
        rows = texts.between(playbook, version.number).order_by("-version__number", "-index")
        past: Past = dict(rows.values_list("bullet_public_id", "before"))
        return load_changed(playbook, past), past
    rows = texts.between(playbook, 0, version.number).order_by("version__number", "index")
    loaded = load_state(playbook)
    return loaded, {
        **dict.fromkeys(loaded.state.bullets),
        **dict(rows.values_list("bullet_public_id", "after")),
    }


def load_changed(playbook: Playbook, past: Past) -> LoadedPlaybook:
    """Of the state only what changes if these bullets are again as they were."""
    known = [snapshot for snapshot in past.values() if snapshot]
    survivors = {snapshot["merged_into"] for snapshot in known} - {""}
    return load_part(playbook, {*past, *survivors}, texts={kept["content"] for kept in known})
