"""The read side for agents and people: agent view, export, diff. Nothing here writes."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from accounts.errors import Invalid
from accounts.scopes import Principal
from playbooks.diff import Diff, compare
from playbooks.document import agent_view, find_section, render_for_agents
from playbooks.models import Playbook, Version
from playbooks.rows import document_of, sections_of, version_of
from playbooks.servings import sign_serving


@dataclass(frozen=True)
class Reading:
    """What an agent gets: `content` is the agent view, `serving_id` the receipt to report with.

    `bullet_count` and `token_count` (an estimate) are of the whole version.
    """

    id: UUID
    name: str
    description: str
    version: int
    serving_id: str
    content: str
    bullet_count: int
    token_count: int
    updated_at: datetime


def read_playbook(
    *, playbook: Playbook, by: Principal, section: str = "", version: int | None = None
) -> Reading:
    """The agent view of the current or an old version, or of one of its sections.

    Raises NotFound for the version, Invalid for the section (its text lists the known ones).
    """
    row = version_of(playbook, version)
    return Reading(
        id=playbook.pk,
        name=playbook.name,
        description=playbook.description,
        version=row.number,
        serving_id=sign_serving(version=row, principal=by),
        content=_section_view(playbook, row, section) if section else agent_view(row.text),
        bullet_count=row.bullet_count,
        token_count=row.token_count,
        updated_at=row.created_at,
    )


def _section_view(playbook: Playbook, version: Version, name: str) -> str:
    sections = sections_of(playbook)
    found = find_section(sections, name)
    if found is None:
        known = ", ".join(f"`{section.slug}` ({section.title})" for section in sections)
        raise Invalid.field("section", f"No such section. This playbook has: {known}.")
    return render_for_agents(document_of(version, sections=sections), section=found.key)


def export_playbook(*, playbook: Playbook, version: int | None = None) -> str:
    """The ACE text of the current or an old version; importing it gives the same text."""
    return version_of(playbook, version).text


def diff_versions(*, playbook: Playbook, number: int, against: int) -> Diff:
    """What version `number` has changed since version `against`; NotFound for either."""
    sections = sections_of(playbook)
    old, new = (document_of(version_of(playbook, n), sections=sections) for n in (against, number))
    return compare(old, new)
