"""The bullets that the page of one playbook shows: searched, sorted and grouped by section."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.paginator import Page, Paginator
from django.db.models import F, QuerySet
from django.http import QueryDict

from core.sql.querysets import search_filter
from playbooks.document.text import number_of
from playbooks.models import Bullet, Playbook, Section
from playbooks.web.lookups import search_text

ALL_AT_ONCE = 100
"""Up to this many bullets are shown at once; of more, the first of each section."""
MAX_PER_SECTION = 20
PAGE = 100
FILTERS = {"active": "Active", "pinned": "Pinned", "retired": "Retired"}
SORTS = {
    "number": "By number",
    "used": "Most used",
    "helpful": "Most helpful",
    "harmful": "Most harmful",
    "changed": "Last changed",
}


@dataclass(frozen=True)
class SectionBullets:
    """One section; `bullets` are those to show of `total`."""

    section: Section
    bullets: Sequence[Bullet]
    total: int

    @property
    def hidden(self) -> int:
        return self.total - len(self.bullets)


@dataclass(frozen=True)
class BulletQuery:
    """The search, filter and order that the query string asks for."""

    words: str
    sort: str
    show: str
    section: str
    page: str

    @classmethod
    def of(cls, query: QueryDict) -> "BulletQuery":
        sort, show = query.get("sort", ""), query.get("show", "")
        return cls(
            words=search_text(query),
            sort=sort if sort in SORTS else "number",
            show=show if show in FILTERS else "active",
            section=query.get("section", "")[:60].replace("\x00", ""),
            page=query.get("page", ""),
        )


def bullet_list_context(playbook: Playbook, query: QueryDict) -> dict[str, Any]:
    """The context of the bullets' part of the page; a fixed number of queries."""
    bullet_query = BulletQuery.of(query)
    sections = list(playbook.sections.all())
    rows = list(sorted_bullets(matching_bullets(playbook, bullet_query), bullet_query.sort))
    known = [section for section in sections if section.key == bullet_query.section]
    page = None
    if known:
        listed = [row for row in rows if row.section_id == known[0].pk]
        page = Paginator(listed, PAGE).get_page(bullet_query.page)
    section_groups = group_by_section(known or sections, rows, page)
    return {
        "bullet_query": bullet_query,
        "sections": sections,
        "section_groups": [group for group in section_groups if group.bullets],
        "empty_sections": [group.section for group in section_groups if not group.total],
        "only": known[0] if known else None,
        "page": page,
        "found": len(rows),
        "shown": FILTERS.items(),
        "counts": playbook.bullets.counts_by_state(),
        "sorts": SORTS.items(),
        "is_filtered": bool(bullet_query.words) or bullet_query.show != "active" or bool(known),
        "latest": last_change(playbook),
        "editable": not playbook.is_starter and not playbook.is_archived,
    }


def matching_bullets(playbook: Playbook, bullet_query: BulletQuery) -> QuerySet[Bullet]:
    status = "retired" if bullet_query.show == "retired" else "active"
    rows = playbook.bullets.filter(status=status).defer("metadata", "content_hash")
    if bullet_query.show == "pinned":
        rows = rows.filter(pinned=True)
    return rows.filter(search_filter(bullet_query.words, "content", "public_id"))


def sorted_bullets(rows: QuerySet[Bullet], sort: str) -> Iterable[Bullet]:
    """The rows in the chosen order, then by number."""
    used = F("helpful") + F("harmful") + F("neutral")
    orders: dict[str, Any] = {
        "used": used.desc(),
        "helpful": F("helpful").desc(),
        "harmful": F("harmful").desc(),
        "changed": F("updated_at").desc(),
    }
    if sort in orders:
        return rows.order_by(orders[sort], "public_id")
    return sorted(rows, key=lambda row: number_of(row.public_id))


def group_by_section(
    sections: Sequence[Section], rows: Sequence[Bullet], page: "Page[Bullet] | None"
) -> list[SectionBullets]:
    """Each section with the bullets to show: a page of the only one, or its first bullets."""
    groups: dict[UUID, list[Bullet]] = {section.pk: [] for section in sections}
    for row in rows:
        if row.section_id in groups:
            groups[row.section_id].append(row)
    most = len(rows) if len(rows) <= ALL_AT_ONCE else MAX_PER_SECTION
    return [
        SectionBullets(
            section,
            list(page) if page is not None else groups[section.pk][:most],
            len(groups[section.pk]),
        )
        for section in sections
    ]


def last_change(playbook: Playbook) -> Any:
    """The current version when it can be undone, with its author."""
    now = playbook.current_version
    if playbook.is_starter or playbook.is_archived or now is None or now.number == 1:
        return None
    return playbook.versions.defer("text").first()
