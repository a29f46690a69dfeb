"""Checks that versions, deltas and rows of a playbook agree."""

from collections.abc import Sequence

from django.db.models import Prefetch

from playbooks.document.deltas import ReplayError, replay
from playbooks.document.operations import Record
from playbooks.document.sections import Section
from playbooks.document.state import State, recount_active
from playbooks.document.text import (
    Document,
    DocumentError,
    estimate_tokens,
    number_of,
    parse,
    render,
    render_for_agents,
    text_hash,
)
from playbooks.models import Delta, Playbook, Version
from playbooks.services.loading import load_state, record_of, sections_of

CHUNK = 50
"""Versions in memory at a time, with their deltas."""


def check_versions(playbook: Playbook) -> tuple[list[str], Document]:
    """The inconsistencies of versions and deltas, and the document that they end with.

    Each version's deltas are replayed on the version before, from the empty playbook on, and the
    result compared byte for byte.
    """
    sections = sections_of(playbook)
    problems: list[str] = []
    before = Document(sections, ())
    applied = Prefetch("deltas", Delta.objects.applied().order_by("index"))
    rows = playbook.versions.order_by("number").prefetch_related(applied)
    for expected, version in enumerate(rows.iterator(chunk_size=CHUNK), start=1):
        if version.number != expected:
            problems.append(f"version {expected} is missing, {version.number} comes next")
            break
        records = [record_of(delta) for delta in version.deltas.all()]
        found, before = _check_version(version, before, records, sections)
        problems += [f"version {version.number}: {problem}" for problem in found]
    return problems, before


def _check_version(
    version: Version, before: Document, records: Sequence[Record], sections: Sequence[Section]
) -> tuple[list[str], Document]:
    """The problems of one version, and its document for the next one to start from."""
    problems = []
    try:
        replayed = replay(before, records)
        problems += _difference("its deltas give", render(replayed), version.text)
    except (ReplayError, KeyError) as error:
        problems.append(str(error))
        replayed = before
    try:
        document = parse(version.text, sections=sections)
    except DocumentError as error:
        return [*problems, f"its text is not a playbook: {error}"], replayed
    problems += _difference("read and written again it is", render(document), version.text)
    view = render_for_agents(document)
    facts = {
        "text_hash": (version.text_hash, text_hash(view)),
        "bullet_count": (version.bullet_count, len(document.bullets)),
        "token_count": (version.token_count, estimate_tokens(view)),
    }
    problems += [
        f"{name} is {stored}, its text says {true}"
        for name, (stored, true) in facts.items()
        if stored != true
    ]
    return problems, document


def _difference(what: str, found: str, stored: str) -> list[str]:
    """Names the first line that differs; empty when the texts are the same bytes."""
    if found == stored:
        return []
    theirs, ours = stored.split("\n"), found.split("\n")
    line = next(
        (n for n, (a, b) in enumerate(zip(theirs, ours, strict=False)) if a != b),
        min(len(theirs), len(ours)),
    )
    kept, given = (lines[line] if line < len(lines) else "" for lines in (theirs, ours))
    return [f"line {line + 1} is {kept[:200]!r}, {what} {given[:200]!r}"]


def check_rows(playbook: Playbook, last: Document) -> list[str]:
    """The inconsistencies between the current rows and the newest version's document."""
    loaded = load_state(playbook)
    problems = _difference_of_rows(loaded.state, last)
    newest = playbook.versions.order_by("-number").first()
    if newest is None or playbook.current_version_id != newest.pk:
        problems.append("the playbook does not point at its newest version")
    highest = max(map(number_of, loaded.bullets), default=0)
    if highest >= playbook.next_bullet_number:
        problems.append(f"the next bullet number would repeat: {playbook.next_bullet_number}")
    return problems


def _difference_of_rows(state: State, last: Document) -> list[str]:
    """Compares active rows with the newest version, and their counters with their votes."""
    problems = [
        f"bullet rows: {problem}"
        for problem in _difference("the rows say", render(state.document()), render(last))
    ]
    recounted = recount_active(state.bullets)
    return problems + [
        f"bullet {bullet.id}: its counters are not its base and its votes"
        for bullet in state.active()
        if recounted[bullet.id] != bullet
    ]
