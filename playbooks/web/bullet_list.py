"""The bullets that the page of one playbook shows: searched, sorted and grouped by section."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.db.models import Count, F, IntegerField, Q, QuerySet, Value, Window
from django.db.models.functions import Cast, RowNumber, StrIndex, Substr
from django.http import QueryDict

from core.sql.querysets import search_filter
from playbooks.document.text import first_ids
from playbooks.models import Bullet, Playbook, Section
from playbooks.web.lookups import search_text

ALL_AT_ONCE = 100
"""Up to this many bullets are shown at once; of more, the first of each section."""
MAX_PER_SECTION = 20
PAGE = 100
AS_READ = ("", "number", "active")
"""Words, order and filter by which the text of the version lists its bullets: it tells the first
without a look at all rows."""
FILTERS = {"active": "Active", "pinned": "Pinned", "retired": "Retired"}
_ACTIVE = Q(status="active")
STATES = {"active": _ACTIVE, "pinned": _ACTIVE & Q(pinned=True), "retired": Q(status="retired")}
SORTS = {
    "number": "By number",
    "used": "Most used",
    "helpful": "Most helpful",
    "harmful": "Most harmful",
    "changed": "Last changed",
}
_USED = F("helpful") + F("harmful") + F("neutral")
_DIGITS = Substr("public_id", StrIndex("public_id", Value("-")) + 1)
ORDERS: dict[str, tuple[Any, ...]] = {
    "number": (Cast(_DIGITS, IntegerField()),),
    "used": (_USED.desc(), "public_id"),
    "helpful": ("-helpful", "public_id"),
    "harmful": ("-harmful", "public_id"),
    "changed": ("-updated_at", "public_id"),
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
    matching = STATES[bullet_query.show] & search_filter(bullet_query.words, "content", "public_id")
    rows = playbook.bullets.filter(matching).defer("metadata", "content_hash")
    by_section: Any = playbook.bullets.order_by().values("section")
    by_state = {state: Count("pk", filter=is_in) for state, is_in in STATES.items()}
    counted = list(by_section.annotate(total=Count("pk", filter=matching), **by_state))
    known = next((each for each in sections if each.key == bullet_query.section), None)
    page = None
    if known:
        listed = rows.filter(section=known).order_by(*ORDERS[bullet_query.sort])
        page = Paginator(listed, PAGE).get_page(bullet_query.page)
        shown, totals = list(page), {known.pk: page.paginator.count}
    else:
        totals = {row["section"]: row["total"] for row in counted}
        shown = list(first_of_each_section(playbook, bullet_query, rows, sum(totals.values())))
    groups = [
        SectionBullets(each, [b for b in shown if b.section_id == each.pk], totals.get(each.pk, 0))
        for each in ([known] if known else sections)
    ]
    editable = not playbook.is_starter and not playbook.is_archived
    has_changed = playbook.current_version is not None and playbook.current_version.number > 1
    return {
        "bullet_query": bullet_query,
        "sections": sections,
        "section_groups": [group for group in groups if group.bullets],
        "empty_sections": [group.section for group in groups if not group.total],
        "only": known,
        "page": page,
        "found": sum(totals.values()),
        "shown": FILTERS.items(),
        "counts": {state: sum(row[state] for row in counted) for state in STATES},
        "sorts": SORTS.items(),
        "is_filtered": bool(bullet_query.words) or bullet_query.show != "active" or bool(known),
        # The current version when it can be undone, with its author.
        "latest": playbook.versions.defer("text").first() if editable and has_changed else None,
        "editable": editable,
    }


def first_of_each_section(
    playbook: Playbook, query: BulletQuery, rows: QuerySet[Bullet], found: int
) -> QuerySet[Bullet]:
    """The bullets to show at once, of `found` in all."""
    order, version = ORDERS[query.sort], playbook.current_version
    if found > ALL_AT_ONCE and version and (query.words, query.sort, query.show) == AS_READ:
        rows = rows.filter(public_id__in=first_ids(version.text, MAX_PER_SECTION))
    elif found > ALL_AT_ONCE:
        place = Window(RowNumber(), partition_by=F("section"), order_by=order)
        first = rows.annotate(place=place).filter(place__lte=MAX_PER_SECTION)
        # A window over whole rows, texts and all, takes five times as long as over their ids.
        rows = rows.filter(pk__in=first.values("pk"))
    return rows.order_by(*order)
