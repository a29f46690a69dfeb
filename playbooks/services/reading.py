"""Reading a playbook: agent view, export, diff. Nothing here writes."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from core.errors import Conflict, Invalid, NotFound
from core.security.scopes import Principal
from playbooks.document.diff import Diff, compare
from playbooks.document.excerpt import Excerpt, ExcerptIndex, OmittedBullets
from playbooks.document.formats import FORMATS, Export, File, write_file
from playbooks.document.sections import find_section
from playbooks.document.similarity import WordIndex
from playbooks.document.text import (
    Document,
    agent_view,
    estimate_tokens,
    parse,
    render_for_agents,
    without_common_bullets,
    without_empty_sections,
)
from playbooks.models import Playbook, Trial, Version
from playbooks.services.loading import document_of, in_this_wording, sections_of, version_of
from playbooks.services.serving_tokens import sign_serving_token
from playbooks.services.validation import NAME_LIMIT
from playbooks.trials import assign_arm

MAX_AMBIGUOUS_IDS = 5
CONTROL_READING = "Control read: work without the playbook, then report as usual.\n"


@dataclass(frozen=True)
class Reading:
    """What an agent gets: `content` is the agent view, `serving_id` the token to report with.

    `left_out` counts the bullets that `max_tokens` left out; `token_count` (an estimate) is of the
    whole version.
    """

    id: UUID
    name: str
    version: int
    serving_id: str
    content: str
    token_count: int
    left_out: tuple[OmittedBullets, ...] = ()


def read_playbook(
    *,
    playbook: Playbook,
    by: Principal,
    section: str = "",
    version: int | None = None,
    max_tokens: int | None = None,
    task_key: str = "",
    task: str = "",
) -> Reading:
    """The agent view of the current or an old version, or of one of its sections.

    While a trial is open and no version is asked for, a coin decides what is read: the same for
    all readings with one `task_key`. With `max_tokens` (an estimate) the most useful bullets that
    fit, and those about `task`. Raises NotFound for the version, Invalid for the limit and for the
    section (its text lists the known ones).
    """
    if max_tokens is not None and max_tokens < 1:
        raise Invalid.field("max_tokens", "Send a whole number of at least 1, or leave it out.")
    assignment = assign_arm(playbook, task_key=task_key) if version is None else None
    row = version_of(playbook, version)
    if assignment is not None and assignment.is_stable:
        row = _control_version(assignment.trial, row)
    read = _Read(playbook, row, section, (playbook.current_version_id, row.text))
    excerpt = _excerpt(read)
    if max_tokens is not None and estimate_tokens(excerpt.text) > max_tokens:
        # The same task seldom comes twice.
        taken = _index(read).take(max_tokens=max_tokens, task=task) if task else None
        excerpt = taken or _excerpt(read, max_tokens)
    if assignment and assignment.is_stable and assignment.trial.kind == Trial.Kind.BARE:
        excerpt = Excerpt(CONTROL_READING, ())
    return Reading(
        id=playbook.pk,
        name=playbook.name,
        version=row.number,
        serving_id=sign_serving_token(version=row, principal=by, assignment=assignment),
        content=excerpt.text,
        token_count=row.token_count,
        left_out=excerpt.left_out,
    )


def _control_version(trial: Trial, newest: Version) -> Version:
    """What the stable arm reads; without a bullet it is a copy that is never saved."""
    if trial.of_version:
        return trial.stable_version
    version = copy(newest)
    if trial.bullet_id:
        lines = newest.text.split("\n")
        version.text = "\n".join(x for x in lines if not x.startswith(f"[{trial.bullet_id}] "))
    return version


def find_playbook(*, by: Principal, name: str) -> Playbook:
    """The active playbook with this name, in any case: one of the caller's own, else a starter.

    Raises NotFound; Invalid (`ambiguous_name`) with their ids when several of one's own have it.
    """
    rows = Playbook.objects.for_user(by, include_starters=True).active()
    rows = rows.named(name.strip()[: NAME_LIMIT + 1]).select_related("current_version")
    found = list(rows.order_by("-updated_at")[: MAX_AMBIGUOUS_IDS + 1])
    own = [playbook for playbook in found if not playbook.is_starter]
    if len(own) > 1:
        ids = ", ".join(str(playbook.pk) for playbook in own[:MAX_AMBIGUOUS_IDS])
        message = f"You have several playbooks with this name. Use one of their IDs: {ids}."
        raise Invalid(message, code="ambiguous_name")
    if not found:
        raise NotFound("playbook", "List yours to find its name.", given="name")
    return (own or found)[0]


def rank_playbooks(
    rows: Sequence[Playbook] | QuerySet[Playbook], words: str, *, shared_only: bool = False
) -> list[Playbook]:
    """The first 200 rows, those first that share the most words of name and description."""
    known = {str(row.pk): row for row in rows[:200]}
    index = WordIndex({pk: f"{row.name} {row.description}" for pk, row in known.items()})
    ranked = dict.fromkeys(index.rank(words))
    return [known[pk] for pk in (ranked if shared_only else ranked | dict.fromkeys(known))]


def refuse_taken_name(*, by: Principal, name: str) -> None:
    """Raise Conflict with the id if an active playbook of the caller has this name, in any case."""
    found = Playbook.objects.for_user(by).active().named(name.strip()).first()
    if found is not None:
        message = f"You have a playbook of this name: {found.pk}. Use it, or choose another name."
        raise Conflict(message, code="duplicate_name")


class _Read(NamedTuple):
    """What is read; `facts`: the newest version, and the text of this one."""

    playbook: Playbook
    version: Version
    section: str
    facts: tuple[UUID | None, str]


@lru_cache(maxsize=64)  # at most 13 MB a process; half of the CPU of a read
def _excerpt(read: _Read, max_tokens: int | None = None) -> Excerpt:
    if max_tokens is not None:
        return _index(read).take(max_tokens=max_tokens)
    if read.section:
        return Excerpt(render_for_agents(_document(read)), ())
    return Excerpt(without_empty_sections(agent_view(read.version.text)), ())


@lru_cache(maxsize=8)  # some 2 MB for 1,000 bullets; to make one takes 15 ms
def _index(read: _Read) -> ExcerptIndex:
    return ExcerptIndex(in_this_wording(read.playbook, _document(read)))


def _document(read: _Read) -> Document:
    """The whole version, or the section of it."""
    sections = sections_of(read.playbook)
    found = find_section(sections, read.section)
    if read.section and found is None:
        known = ", ".join(f"`{section.slug}` ({section.title})" for section in sections)
        raise Invalid.field("section", f"No such section. This playbook has: {known}.")
    whole = document_of(read.version, sections=sections)
    if found is None:
        return whole
    return Document((found,), tuple(b for b in whole.bullets if b.section == found.key))


def diff_versions(*, playbook: Playbook, number: int, against: int) -> Diff:
    """What version `number` has changed since version `against`; NotFound for either."""
    sections = sections_of(playbook)
    texts = (version_of(playbook, n).text for n in (against, number))
    old, new = (parse(text, sections=sections) for text in without_common_bullets(*texts))
    return compare(old, new)


def export_file(*, playbook: Playbook, format_name: str, version: int | None = None) -> File:
    """The current or an old version in one of FORMATS. Raises NotFound, and Invalid."""
    if format_name not in FORMATS:
        raise Invalid.field("format", f"Choose one of: {', '.join(FORMATS)}.")
    row = version_of(playbook, version)
    document = document_of(row, sections=sections_of(playbook))
    export = Export(document, playbook.name, playbook.description, row.number)
    return write_file(export, format_name)
