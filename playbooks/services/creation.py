"""Create playbooks: empty, imported, or cloned."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from accounts.models import User
from billing.limits.plan_limits import check_playbook_limit
from core.audit import record
from core.errors import Forbidden, Invalid, TooLarge
from core.ratelimit.limits import consume_rate_limit
from core.security.scopes import Principal
from playbooks.document.imports import Import, read_import
from playbooks.document.operations import HELD, Result
from playbooks.document.review_rule import Review
from playbooks.document.sections import DEFAULT_SECTIONS, Section
from playbooks.document.state import State
from playbooks.document.state_diff import build_initial_state, bullets_for_clone, change_state
from playbooks.document.text import DocumentError
from playbooks.models import Delta, Playbook, ReviewPolicy, Version
from playbooks.models import Section as SectionRow
from playbooks.services.loading import LoadedPlaybook, load_state
from playbooks.services.publishing import at_once, publish
from playbooks.services.validation import (
    NAME_LIMIT,
    clean_description,
    clean_name,
    clean_sections,
    refuse_risky_texts,
)


def prepare_playbook(
    *,
    by: Principal,
    name: str,
    description: str = "",
    sections: Sequence[Section] | None = None,
    content: str = "",
    owner: User | None = None,
) -> Callable[[], Playbook]:
    """Creates a playbook of `by`, at version 1, with the advice of `content` in any import format.

    Without it an empty one, with the default sections unless others are given. `owner`: somebody
    else, for whom staff creates it. Raises Invalid; the call of the result, as all that makes a
    playbook here, PlanLimitReached.
    """
    if content.strip():
        if sections:
            raise Invalid.field("sections", "The sections come from `content`: leave one out.")
        return prepare_import(
            by=by, content=content, name=name, description=description, owner=owner
        )
    headings = DEFAULT_SECTIONS if not sections else clean_sections(sections)
    refuse_risky_texts(by, description=[description], sections=[s.title for s in headings])
    return partial(
        _start,
        "create_playbook",
        by,
        owner=owner,
        name=clean_name(name),
        description=clean_description(description),
        source=Playbook.Source.USER_CREATED,
        result=Result(State(headings), ()),
        reason=Version.Reason.CREATE,
    )


create_playbook = at_once(prepare_playbook)


def prepare_import(
    *, by: Principal, content: str, name: str = "", description: str = "", owner: User | None = None
) -> Callable[[], Playbook]:
    """Creates a playbook of `by` with the bullets of a text in any import format, at version 1.

    Ids and counters are kept where the format has them. Name and description default to those
    inside the text. Of what a key or app imports, risky texts wait in the review queue, and those
    over SOURCE_IMPORTS_PER_DAY. Raises TooLarge, and Invalid with the line.
    """
    found = _read(content)
    description = description.strip() or found.description
    headings = [section.title for section in found.document.sections]
    refuse_risky_texts(by, description=[description], content=headings)
    return partial(
        _start,
        "import_playbook",
        by,
        owner=owner,
        name=clean_name(name.strip() or found.name),
        description=clean_description(description),
        source=Playbook.Source.IMPORTED,
        result=build_initial_state(found.document, reason="Imported.", review=_review_rule(by)),
        reason=Version.Reason.IMPORT,
    )


import_playbook = at_once(prepare_import)


def preview_import(*, content: str, by: Principal | None = None) -> Import:
    """What import_playbook would make of the text, line by line; None: for a person.

    Raises as it does.
    """
    found = _read(content)
    made = build_initial_state(found.document, reason="", review=_review_rule(by))
    held = {r.after["id"]: r.reason_code for r in made.records if r.status == HELD and r.after}
    entries = (replace(entry, held=held.get(entry.id, "")) for entry in found.entries)
    return replace(found, entries=tuple(entries))


def _review_rule(by: Principal | None) -> Review | None:
    """The rule for the texts that a key or app imports; None for a person's."""
    if by is None or by.is_person:
        return None
    since = timezone.now() - timedelta(days=1)
    today = Delta.objects.applied().filter(
        playbook__owner=by.user,
        playbook__created_at__gt=since,
        version__reason=Version.Reason.IMPORT,
        version__source=by.source,
    )
    return Review(
        ReviewPolicy.RISKY,
        author=by.source,
        taught={by.source: today.count()},
        cap=settings.SOURCE_IMPORTS_PER_DAY,
    )


def _read(content: str) -> Import:
    size = len(content.encode(errors="replace"))
    if size > settings.MAX_PLAYBOOK_BYTES:
        message = f"The text has {size:,} bytes; the limit is {settings.MAX_PLAYBOOK_BYTES:,}."
        raise TooLarge(message, fields={"content": [message]})
    try:
        return read_import(content)
    except DocumentError as error:
        raise Invalid.field("content", str(error)) from None


def clone_playbook(*, playbook: Playbook, by: Principal, name: str = "") -> Playbook:
    """A copy owned by `by`: active bullets with ids, pins and counters; no history."""
    state = load_state(playbook, touching=()).state
    empty = State(state.sections, next_number=state.next_number)
    suffix = "" if playbook.is_starter else " (copy)"
    default = playbook.name[: NAME_LIMIT - len(suffix)] + suffix
    return _start(
        "clone_playbook",
        by,
        name=clean_name(name or default),
        description=playbook.description,
        source=Playbook.Source.USER_CREATED,
        result=change_state(
            empty, bullets_for_clone(state), reason=f"Cloned from {playbook.name}."
        ),
        reason=Version.Reason.CLONE,
        cloned_from=playbook,
        token_budget=playbook.token_budget,
        outcome_threshold=playbook.outcome_threshold,
        time_threshold_hours=playbook.time_threshold_hours,
    )


def _start(action: str, by: Principal, *, owner: User | None = None, **fields: Any) -> Playbook:
    owner = owner or by.user
    if by.playbook_ids is not None:
        raise Forbidden(
            "This API key is limited to some playbooks. Use an unrestricted key to create others.",
            code="limited_key",
        )
    refuse_risky_texts(by, name=[fields["name"]])
    with transaction.atomic():
        consume_rate_limit("create_playbook", str(owner.pk))
        active = Playbook.objects.active().filter(owner=owner)
        check_playbook_limit(user=owner, active=active)
        playbook = create_with_initial_version(owner=owner, author=by, **fields)
        record(action=action, by=by, subject=playbook, owner=playbook.owner_id)
    return playbook


def create_with_initial_version(
    *,
    owner: User | None,
    author: Principal | None = None,
    name: str,
    description: str,
    source: str,
    result: Result,
    reason: str,
    **fields: Any,
) -> Playbook:
    """The playbook, its sections and version 1 with the deltas that explain it, all or nothing."""
    with transaction.atomic():
        playbook = Playbook.objects.create(
            owner=owner, name=name, description=description, source=source, **fields
        )
        rows = [
            SectionRow(playbook=playbook, position=position, **vars(section))
            for position, section in enumerate(result.state.sections)
        ]
        SectionRow.objects.bulk_create(rows)
        empty = LoadedPlaybook(State(result.state.sections), {row.key: row for row in rows}, {})
        publish(playbook, empty, result, reason=reason, author=author, always=True)
    return playbook
