"""Search: a user's playbooks, bullets, outcomes and versions, and the documentation.

Look-ups that begin at an index on the playbook, and read a bounded number of rows: no full-text
index, which every report would pay for. DECISIONS.md has the figures.
"""

import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.urls import reverse

from config.docs_site.documents import find_sections
from config.docs_site.views import documents
from core.security.scopes import Principal
from core.sql.querysets import search_filter
from evolution.models import Outcome, OutcomeCounts
from evolution.models.outcomes import SEARCHED
from playbooks.models import Bullet, Playbook, Version

MOST = 8
"""Results of one kind."""
PLAYBOOKS, LISTED = 200, ("status", "-updated_at")
"""Playbooks whose bullets and outcomes are searched: active ones first, last changed first."""
LABEL_CHARS = 200
NUMBER = re.compile(r"(?:v|version)?(\d{1,9})", re.IGNORECASE)


@dataclass(frozen=True)
class SearchResult:
    """What was found: `id` is a bullet's public id, a version's number, else that of the row."""

    kind: str
    label: str
    url: str
    hint: str = ""
    id: str = ""
    playbook_id: UUID | None = None


def search(by: Principal, words: str) -> list[SearchResult]:
    """What has every one of the words, at most MOST of each kind; only the user's own rows."""
    own = Playbook.objects.for_user(by).order_by(*LISTED).values("pk")[:PLAYBOOKS]
    return [
        *find_playbooks(by, words),
        *_find_bullets(own, words),
        *_find_outcomes(own, words),
        *_find_versions(own, words),
        *find_documentation(words),
    ]


def find_playbooks(by: Principal, words: str) -> list[SearchResult]:
    """Playbooks by name, active ones first; without words the last changed."""
    rows = Playbook.objects.for_user(by).filter(search_filter(words, "name"))
    return [
        _result(row, row, row.name, "archived" if row.is_archived else "")
        for row in rows.only("name", "status").order_by(*LISTED)[:MOST]
    ]


def _find_bullets(own: Any, words: str) -> list[SearchResult]:
    """Active bullets by their text, and any bullet by its id."""
    active = Q(status=Bullet.Status.ACTIVE) & search_filter(words, "content")
    rows = Bullet.objects.filter(active | Q(public_id=words.lower()), playbook__in=own)
    return [
        _result(row, row.playbook, row.content, f"{row.public_id} · {row.playbook.name}")
        for row in rows.select_related("playbook").order_by("-updated_at")[:MOST]
    ]


def _find_outcomes(own: Any, words: str) -> list[SearchResult]:
    """The newest outcomes with the words, among SEARCHED: of one playbook not all, if need be."""
    counts = OutcomeCounts.objects.filter(playbook__in=own, reported__gt=0)
    counts = counts.order_by("playbook__status", "-playbook__updated_at")
    whole, left, first_part = list[UUID](), SEARCHED, None
    for pk, reported in counts.values_list("playbook_id", "reported"):
        if reported <= left:
            whole.append(pk)
            left -= reported
        else:
            first_part = first_part or pk
    known = Outcome.objects.select_related("playbook")
    rows = list(known.filter(playbook__in=whole).matching(words)[:MOST])
    if first_part and left and len(rows) < MOST:
        rows += known.filter(playbook=first_part).matching(words, among=left)[: MOST - len(rows)]
    return [
        _result(row, row.playbook, row.task_description, f"{row.status} · {row.playbook.name}")
        for row in rows
    ]


def _find_versions(own: Any, words: str) -> list[SearchResult]:
    """Versions by their number: `v12`, `version 12`, `12 fixing`."""
    numbers = [match[1] for word in words.split() if (match := NUMBER.fullmatch(word))]
    others = [w for w in words.split() if not NUMBER.fullmatch(w) and w.lower() != "version"]
    rows = Version.objects.filter(playbook__in=own, number__in=map(int, numbers[:1]))
    rows = rows.filter(search_filter(" ".join(others), "playbook__name"))
    return [
        _result(row, row.playbook, f"{row.playbook.name}, {row}", row.get_reason_display())
        for row in rows.defer("text", "sealed").select_related("playbook")[:MOST]
    ]


def _result(
    row: Playbook | Bullet | Outcome | Version, playbook: Playbook, label: str, hint: str
) -> SearchResult:
    kind, url = str(row._meta.model_name), row.get_absolute_url()
    name = str(getattr(row, "public_id", "") or getattr(row, "number", "") or row.pk)
    return SearchResult(kind, label[:LABEL_CHARS], url, hint, name, playbook.pk)


def find_documentation(words: str, most: int = MOST) -> list[SearchResult]:
    """Sections of the documentation, those first that have the words in their heading."""
    return [
        SearchResult(
            "documentation",
            found.heading,
            f"{reverse('docs_page', args=[found.document.slug])}#{found.anchor}",
            found.title,
        )
        for found in find_sections(documents(), words)[:most]
    ]
