"""Checks that versions, deltas and rows of a playbook agree."""

from collections.abc import Iterator, Sequence
from itertools import groupby

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


def check_versions(playbook: Playbook) -> tuple[list[str], Document]:
    """The inconsistencies of versions and deltas, and the document that they end with.

    Each version's deltas are replayed on the version before, from the empty playbook on, and the
    result compared byte for byte.
    """
    sections = sections_of(playbook)
    batches = _records(playbook)
    number, records = next(batches, (0, []))
    problems: list[str] = []
    before = Document(sections, ())
    for expected, version in enumerate(playbook.versions.order_by("number").iterator(), start=1):
        if version.number != expected:
            problems.append(f"version {expected} is missing, {version.number} comes next")
            break
        theirs = records if number == expected else []
        found, before = _check_version(version, before, theirs, sections)
        problems += [f"version {version.number}: {problem}" for problem in found]
        if number == expected:
            number, records = next(batches, (0, []))
    return problems, before


def _records(playbook: Playbook) -> Iterator[tuple[int, list[Record]]]:
    """The applied deltas of each version, versions in order; those of one in memory at a time."""
    rows = playbook.deltas.applied().exclude(version=None).select_related("version")
    ordered = rows.defer("version__text").order_by("version__number", "index").iterator()
    for number, deltas in groupby(ordered, key=_number):
        yield number, [record_of(delta) for delta in deltas]


def _number(delta: Delta) -> int:
    return delta.version.number if delta.version else 0


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
        return [*problems, f"its text is no playbook: {error}"], replayed
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
