"""How far a new account is: the five steps from nothing to a playbook that learned something."""

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from django.db.models import Exists, Q
from django.http import HttpRequest

from accounts.models import ApiKey, User
from evolution.models import EvolutionJob, Outcome
from mcp_bridge.clients import BY_SLUG
from mcp_bridge.models import ClientActivity
from playbooks.models import Playbook, Version

TITLES = {
    "playbook": "Make or clone a playbook",
    "key": "Make an API key",
    "connect": "Connect an agent",
    "outcome": "Get the first outcome",
    "evolution": "Watch the first evolution",
}
FIRST_CLIENTS = ("claude-code", "codex", "cursor", "vs-code", "gemini-cli")
STARTERS_SHOWN = 4


@dataclass(frozen=True)
class Step:
    """One line of the checklist; `is_next` is the first that is not done."""

    name: str
    number: int
    is_done: bool
    is_next: bool

    @property
    def title(self) -> str:
        return TITLES[self.name]


def steps_of(user: User) -> list[Step]:
    """The checklist, found out from rows; one query."""
    done = _done(user)
    first = next((name for name in TITLES if not done[name]), "")
    return [
        Step(name, number, done[name], name == first) for number, name in enumerate(TITLES, start=1)
    ]


def _done(user: User) -> dict[str, bool]:
    """A login in the browser stands for a key; an agent at REST leaves its mark on its key."""
    contacts = ClientActivity.objects.filter(user=user).exclude(accepted_at=None)
    keys = ApiKey.objects.filter(user=user)
    outcomes = Outcome.objects.filter(playbook__owner=user)
    found = User.objects.filter(pk=user.pk).values(
        playbook=Exists(Playbook.objects.filter(owner=user)),
        key=Q(Exists(keys)) | Q(Exists(contacts)),
        connect=Q(Exists(contacts)) | Q(Exists(keys.exclude(last_used_at=None))),
        outcome=Exists(outcomes),
        evolution=Exists(EvolutionJob.objects.filter(playbook__owner=user, status="completed")),
    )
    return {name: bool(is_so) for name, is_so in found[0].items()}


def show_onboarding(request: HttpRequest) -> bool:
    """Somebody is logged in who has neither finished nor put away the checklist."""
    user = getattr(request, "user", None)
    return user is not None and user.is_authenticated and "start" not in user.settings


def onboarding_context(user: User, *, steps: list[Step], mcp_url: str) -> dict[str, Any]:
    """What the step that comes next needs, beside the steps themselves."""
    name = next((step.name for step in steps if step.is_next), "")
    context: dict[str, Any] = {"steps": steps, "next": name, "all_done": not name}
    context["state"] = "".join("x" if step.is_done else "-" for step in steps)
    if name == "playbook":
        starters = Playbook.objects.starters().active().with_counts().order_by("name")
        context["starters"] = starters[:STARTERS_SHOWN]
    elif name == "key":
        context["form_id"] = uuid4().hex
    elif name == "connect":
        clients = [BY_SLUG[slug] for slug in FIRST_CLIENTS if slug in BY_SLUG]
        context["snippets"] = [(one, one.key.fill(mcp_url)) for one in clients if one.key]
    elif name:
        own = Playbook.objects.for_user(user).active().with_counts()
        context["playbook"] = own.order_by("-updated_at").first()
    else:
        made = Version.objects.filter(playbook__owner=user, reason=Version.Reason.EVOLUTION)
        context["learned"] = made.order_by("-created_at").only("playbook_id", "number").first()
    return context
