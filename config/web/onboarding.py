"""The onboarding checklist: five steps from a new account to the first evolution."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, Q
from django.http import HttpRequest

from accounts.models import ApiKey, User
from evolution.models import EvolutionJob, Outcome
from mcp_bridge.clients import BY_SLUG, connect_command
from mcp_bridge.models import ClientActivity
from playbooks.models import Playbook, Version

TITLES = {
    "playbook": "Create or clone a playbook",
    "key": "Create an API key",
    "connect": "Connect an agent",
    "outcome": "Report the first outcome",
    "evolution": "See the first evolution",
}
FIRST_CLIENTS = ("claude-code", "codex", "cursor", "vs-code", "gemini-cli")
STARTERS_SHOWN = 4


@dataclass(frozen=True)
class Step:
    """One step of the checklist; `is_next` marks the first that is not done."""

    name: str
    number: int
    is_done: bool
    is_next: bool

    @property
    def title(self) -> str:
        return TITLES[self.name]


def steps_of(user: User) -> list[Step]:
    """The checklist, derived from the user's rows in one query."""
    done = _done(user)
    first = next((name for name in TITLES if not done[name]), "")
    return [
        Step(name, number, done[name], name == first) for number, name in enumerate(TITLES, start=1)
    ]


def _done(user: User) -> dict[str, bool]:
    """An OAuth login counts as a key; a REST client shows in its key's `last_used_at`."""
    clients_seen = ClientActivity.objects.filter(user=user).exclude(accepted_at=None)
    keys = ApiKey.objects.filter(user=user)
    outcomes = Outcome.objects.filter(playbook__owner=user)
    found = User.objects.filter(pk=user.pk).values(
        playbook=Exists(Playbook.objects.filter(owner=user)),
        key=Q(Exists(keys)) | Q(Exists(clients_seen)),
        connect=Q(Exists(clients_seen)) | Q(Exists(keys.exclude(last_used_at=None))),
        outcome=Exists(outcomes),
        evolution=Exists(EvolutionJob.objects.filter(playbook__owner=user, status="completed")),
    )
    return {name: bool(is_so) for name, is_so in found[0].items()}


def show_onboarding(request: HttpRequest) -> bool:
    """True while the onboarding checklist should be shown."""
    user = getattr(request, "user", None)
    return user is not None and user.is_authenticated and "start" not in user.settings


def onboarding_context(user: User, *, steps: list[Step], mcp_url: str) -> dict[str, Any]:
    """The template context: the steps and what the next one needs."""
    name = next((step.name for step in steps if step.is_next), "")
    context: dict[str, Any] = {"steps": steps, "next": name, "all_done": not name}
    context["state"] = "".join("x" if step.is_done else "-" for step in steps)
    if name == "playbook":
        starters = Playbook.objects.starters().active().with_counts().order_by("name")
        context["starters"] = starters[:STARTERS_SHOWN]
    elif name:
        context["automatic"] = connect_command(mcp_url)
        clients = [BY_SLUG[slug] for slug in FIRST_CLIENTS if slug in BY_SLUG]
        context["snippets"] = [(one, one.snippets["key"].fill(mcp_url)) for one in clients]
        own = Playbook.objects.for_user(user).active().with_counts()
        context["playbook"] = own.order_by("-updated_at").first()
    else:
        made = Version.objects.filter(playbook__owner=user, reason=Version.Reason.EVOLUTION)
        context["learned"] = made.order_by("-created_at").only("playbook_id", "number").first()
    return context
