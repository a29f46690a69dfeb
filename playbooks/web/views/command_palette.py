"""The command palette and its page: the user's playbooks, pages and actions."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_safe

from core.http.requests import UserRequest
from playbooks.models import Playbook
from playbooks.web.lookups import search_text

MAX_PLAYBOOKS = 8
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


@dataclass(frozen=True)
class PaletteItem:
    """One item of the palette; `theme` is set for items that only change the theme."""

    label: str
    address: str
    hint: str = ""
    theme: str = ""


@login_required
@require_safe
def go(request: UserRequest) -> HttpResponse:
    words = search_text(request.GET)
    context = {"q": words, "groups": palette_groups(request, words)}
    part = "#found" if request.htmx else ""
    return render(request, f"playbooks/command_palette.html{part}", context)


def palette_groups(request: UserRequest, words: str) -> list[tuple[str, list[PaletteItem]]]:
    """The items that match, by heading; without words all items and the newest playbooks."""
    pages = [PaletteItem(label, found) for label, name in PAGES if (found := url_or_empty(name))]
    if request.user.is_staff:
        pages.append(PaletteItem("Admin", reverse("admin:index")))
    actions = [PaletteItem(label, reverse(name)) for label, name in ACTIONS]
    actions += [PaletteItem(label, "#theme-label", theme=theme) for label, theme in THEMES]
    groups = [
        ("Playbooks", matching_playbooks(request, words)),
        ("Pages", matching_items(pages, words)),
        ("Actions", matching_items(actions, words)),
    ]
    return [(name, items) for name, items in groups if items]


def matching_playbooks(request: UserRequest, words: str) -> list[PaletteItem]:
    rows: Any = Playbook.objects.for_user(request.user).only("name", "status", "id")
    if words:
        rows = rows.filter(name__icontains=words)
    found = rows.order_by("status", "-updated_at")[:MAX_PLAYBOOKS]
    return [
        PaletteItem(row.name, row.get_absolute_url(), hint="archived" if row.is_archived else "")
        for row in found
    ]


def matching_items(items: list[PaletteItem], words: str) -> list[PaletteItem]:
    """Those whose label has every word."""
    wanted = words.casefold().split()
    return [item for item in items if all(word in item.label.casefold() for word in wanted)]


def url_or_empty(name: str) -> str:
    """A page's URL; empty for one that this installation does not have."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""
