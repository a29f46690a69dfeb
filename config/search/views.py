"""The command palette and its page, the search of the documentation, and search over REST."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_safe
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from config.search.queries import SearchResult, find_documentation, find_playbooks, search
from core.http.requests import UserRequest
from core.rest.views import BaseViewSet, operation
from core.security.scopes import Principal, Scope
from playbooks.web.lookups import search_text

PAGES = (
    ("Start", "onboarding"),
    ("Overview", "evolution:overview"),
    ("Playbooks", "playbooks:list"),
    ("Inbox", "evolution:inbox"),
    ("Playground", "evolution:playground"),
    ("Connect an agent", "mcp_bridge:connect"),
    ("Sessions", "evolution:sessions"),
    ("Usage", "billing:usage"),
    ("Budgets", "billing:budgets"),
    ("API keys", "accounts:keys"),
    ("Settings", "accounts:settings"),
    ("Activity", "accounts:activity"),
    ("Documentation", "docs_index"),
)
ACTIONS = (("New playbook", "playbooks:create"), ("Import a playbook", "playbooks:import"))
THEMES = (
    ("Use the light theme", "light"),
    ("Use the dark theme", "dark"),
    ("Use the system’s theme", "system"),
)
KINDS = {
    **{"playbook": "Playbooks", "page": "Pages", "action": "Actions", "theme": "Themes"},
    **{"bullet": "Bullets", "outcome": "Outcomes", "version": "Versions"},
    "documentation": "Documentation",
}
"""Headings of the palette, in order."""
MOST_SECTIONS = 50


@login_required
@require_safe
def go(request: UserRequest) -> HttpResponse:
    """The palette's answer, or the page without JavaScript."""
    words, by = search_text(request.GET), Principal.of(request.user)
    found = search(by, words) if words else find_playbooks(by, "")
    places = list(KINDS)
    listed = sorted([*found, *_commands(request, words)], key=lambda it: places.index(it.kind))
    groups = [(KINDS[kind], list(items)) for kind, items in groupby(listed, key=lambda it: it.kind)]
    part = "#found" if request.htmx else ""
    return render(request, f"config/command_palette.html{part}", {"q": words, "groups": groups})


def _commands(request: UserRequest, words: str) -> Iterable[SearchResult]:
    """The pages and actions whose name has every word."""
    staff = (("Admin", "admin:index"),) if request.user.is_staff else ()
    named = [("page", PAGES + staff), ("action", ACTIONS)]
    known = [
        SearchResult(kind, label, _url(name)) for kind, names in named for label, name in names
    ]
    known += [SearchResult("theme", label, "#theme-label", id=theme) for label, theme in THEMES]
    wanted = words.casefold().split()
    return (
        item for item in known if item.url and all(word in item.label.casefold() for word in wanted)
    )


def _url(name: str) -> str:
    """A page's URL; empty for one that this installation does not have."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""


@require_safe
def search_documentation(request: HttpRequest) -> HttpResponse:
    words = search_text(request.GET)
    found = find_documentation(words, MOST_SECTIONS) if words else []
    return render(request, "config/docs_search.html", {"q": words, "found": found})


class SearchResultSerializer(serializers.Serializer[Any]):
    """One row or section that has every word; `url` is its page."""

    kind = serializers.CharField(help_text="playbook, bullet, outcome, version, documentation")
    label = serializers.CharField(help_text="Its name, or the beginning of its text.")  # type: ignore[assignment]  # DRF takes it out of the class
    hint = serializers.CharField()
    url = serializers.CharField(help_text="The path of its page.")
    id = serializers.CharField(help_text="UUID, bullet id or version number; empty: none.")
    playbook_id = serializers.UUIDField(allow_null=True)


class SearchResultsSerializer(serializers.Serializer[Any]):
    """At most 8 results of each kind."""

    results = SearchResultSerializer(many=True)


class SearchViewSet(BaseViewSet):
    @operation(
        Scope.READ,
        SearchResultsSerializer,
        parameters=[OpenApiParameter("q", description="Search terms; all must match.")],
    )
    def search(self) -> dict[str, Sequence[SearchResult]]:
        """Search your playbooks, bullets, outcomes and versions, and the documentation."""
        words = search_text(self.request.query_params)
        return {"results": search(self.principal, words) if words else []}
