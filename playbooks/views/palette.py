"""Where one can go: pages, one's playbooks, and what can be begun; the palette and its page."""

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import NoReverseMatch, reverse
from django.views.decorators.http import require_safe

from accounts.http import UserRequest
from playbooks.models import Playbook

MOST = 8
PAGES = (
    ("Start", "start"),
    ("Playbooks", "playbooks:list"),
    ("Playground", "evolution:playground"),
    ("Starters", "playbooks:starters"),
    ("Connect an agent", "mcp_bridge:connect"),
    ("Sessions", "evolution:sessions"),
    ("Usage", "billing:usage"),
    ("Budgets", "billing:budgets"),
    ("API keys", "accounts:keys"),
    ("Settings", "accounts:settings"),
    ("Activity", "accounts:activity"),
    ("Documentation", "handbook"),
)
ACTIONS = (
    ("New playbook", "playbooks:create"),
    ("Import a playbook", "playbooks:import"),
)
THEMES = (
    ("Use the light theme", "light"),
    ("Use the dark theme", "dark"),
    ("Use the system’s theme", "system"),
)


@dataclass(frozen=True)
class Place:
    """One line of the palette; `theme` marks the lines that only change how pages look."""

    label: str
    address: str
    hint: str = ""
    theme: str = ""


@login_required
@require_safe
def go(request: UserRequest) -> HttpResponse:
    words = request.GET.get("q", "").replace("\x00", "").strip()[:120]
    context = {"q": words, "groups": groups_for(request, words)}
    part = "#found" if request.htmx else ""
    return render(request, f"playbooks/go.html{part}", context)


def groups_for(request: UserRequest, words: str) -> list[tuple[str, list[Place]]]:
    """The places that match, under a heading each; everything and the newest for no words."""
    pages = [Place(label, found) for label, name in PAGES if (found := address_of(name))]
    if request.user.is_staff:
        pages.append(Place("Admin", reverse("admin:index")))
    actions = [Place(label, reverse(name)) for label, name in ACTIONS]
    actions += [Place(label, "#theme-label", theme=theme) for label, theme in THEMES]
    groups = [
        ("Playbooks", playbooks_for(request, words)),
        ("Pages", matching(pages, words)),
        ("Actions", matching(actions, words)),
    ]
    return [(name, places) for name, places in groups if places]


def playbooks_for(request: UserRequest, words: str) -> list[Place]:
    rows: Any = Playbook.objects.for_user(request.user).only("name", "status", "id")
    if words:
        rows = rows.filter(name__icontains=words)
    found = rows.order_by("status", "-updated_at")[:MOST]
    return [
        Place(row.name, row.get_absolute_url(), hint="archived" if row.is_archived else "")
        for row in found
    ]


def matching(places: list[Place], words: str) -> list[Place]:
    """Those whose label has every word."""
    wanted = words.casefold().split()
    return [one for one in places if all(word in one.label.casefold() for word in wanted)]


def address_of(name: str) -> str:
    """Where a page is; empty for one that this installation does not have."""
    try:
        return reverse(name)
    except NoReverseMatch:
        return ""
