"""Every REST route with the scope it needs and a body that it takes: the table of the matrices."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

from accounts.keys.jwt_tokens import issue_tokens
from accounts.models import User
from accounts.services.webhooks import set_webhook
from core.security.scopes import Principal, Scope
from evolution.jobs.lifecycle import trigger_evolution
from evolution.sharing import create_share_link
from playbooks.services.reading import read_playbook
from playbooks.services.trials import start_trial, stop_trial
from tests.factories import (
    PASSWORD,
    make_key,
    make_outcome,
    make_playbook,
    make_review_item,
    make_session,
)

READ, REPORT, WRITE = Scope.READ, Scope.REPORT, Scope.WRITE
EVOLVE, ACCOUNT = Scope.EVOLVE, Scope.ACCOUNT
CANARY = "canary-7f3a"


@dataclass(frozen=True)
class Route:
    """`path` has `{playbook}`, `{job}` or `{key}` where it names a row of one owner."""

    method: str
    path: str
    scope: Scope | None
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def is_owned(self) -> bool:
        return "{" in self.path

    @property
    def is_under_playbook(self) -> bool:
        names = ("{playbook}", "{job}", "{outcome}", "{session}", "{trial}", "{share}")
        return any(name in self.path for name in names)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


PLAYBOOK, KEY, JOB = "/playbooks/{playbook}", "/auth/api-keys/{key}", "/evolutions/{job}"
SESSION = "/sessions/{session}"
VERSION = f"{PLAYBOOK}/versions/1"
HISTORY = f"{PLAYBOOK}/bullets/str-00001/history"
REVIEW = f"{PLAYBOOK}/reviews/{{review}}"
CREDENTIALS = {"email": "dora@example.org", "password": PASSWORD}
ADD = {"type": "ADD", "section": "str", "content": "Say what the failing test expects."}
ROUTES = [
    Route("POST", "/auth/register", None, CREDENTIALS),
    Route("POST", "/auth/login", None, CREDENTIALS),
    Route("POST", "/auth/refresh", None, {"refresh": "x"}),
    Route("POST", "/auth/logout", None, {"refresh": "x"}),
    Route("GET", "/auth/me", READ),
    Route("DELETE", "/auth/me", ACCOUNT, {"password": PASSWORD}),
    Route("GET", "/auth/me/export", ACCOUNT),
    Route("GET", "/auth/api-keys", ACCOUNT),
    Route("POST", "/auth/api-keys", ACCOUNT, {"name": "a", "scopes": ["read"]}),
    Route("GET", KEY, ACCOUNT),
    Route("PATCH", KEY, ACCOUNT, {"name": "b"}),
    Route("DELETE", KEY, ACCOUNT),
    Route("POST", f"{KEY}/rotate", ACCOUNT, {"overlap_hours": 1}),
    Route("GET", "/webhook", ACCOUNT),
    Route("PUT", "/webhook", ACCOUNT, {"url": "https://93.184.216.34/"}),
    Route("DELETE", "/webhook", ACCOUNT),
    Route("POST", "/webhook/test", ACCOUNT),
    Route("GET", "/playbooks", READ),
    Route("POST", "/playbooks", WRITE, {"name": "New", "sections": [{"title": "FIRST"}]}),
    Route("POST", "/playbooks/import", WRITE, {"name": "New", "content": "## OTHERS\n"}),
    Route("GET", PLAYBOOK, READ),
    Route("PUT", PLAYBOOK, WRITE, {"name": "Renamed"}),
    Route("PATCH", PLAYBOOK, WRITE, {"description": "New"}),
    Route("DELETE", PLAYBOOK, WRITE),
    Route("POST", f"{PLAYBOOK}/clone", WRITE, {"name": "Copy"}),
    Route("GET", f"{PLAYBOOK}/export", READ),
    Route("GET", f"{PLAYBOOK}/versions", READ),
    Route("GET", VERSION, READ),
    Route("GET", f"{VERSION}/diff", READ),
    Route("POST", f"{VERSION}/rollback", WRITE),
    Route("POST", f"{VERSION}/undo", WRITE),
    Route("GET", f"{PLAYBOOK}/seals", READ),
    Route("GET", f"{PLAYBOOK}/sections", READ),
    Route("GET", f"{PLAYBOOK}/bullets", READ),
    Route("GET", HISTORY, READ),
    Route("POST", f"{PLAYBOOK}/deltas", WRITE, {"operations": [ADD]}),
    Route("GET", f"{PLAYBOOK}/reviews", READ),
    Route("POST", f"{REVIEW}/approve", ACCOUNT, {"content": "Read the notes first."}),
    Route("POST", f"{REVIEW}/decline", ACCOUNT),
    Route("GET", f"{PLAYBOOK}/trials", READ),
    Route("POST", f"{PLAYBOOK}/trials", WRITE, {"kind": "bullet", "bullet_id": "str-00001"}),
    Route("GET", "/trials/{trial}", READ),
    Route("POST", "/trials/{trial}/end", WRITE, {"keep": "newest"}),
    Route("GET", f"{PLAYBOOK}/sources", READ),
    Route("POST", f"{PLAYBOOK}/sources/rollback", ACCOUNT, {"source": "user:{owner}"}),
    Route("GET", f"{PLAYBOOK}/outcomes", READ),
    Route("POST", f"{PLAYBOOK}/outcomes", REPORT, {"task_description": "a", "outcome": "success"}),
    Route("GET", "/outcomes/{outcome}", READ),
    Route("PATCH", "/outcomes/{outcome}", REPORT, {"outcome": "failure"}),
    Route("PATCH", "/outcomes?ref=abc123", REPORT, {"outcome": "failure"}),
    Route("GET", f"{PLAYBOOK}/cases", WRITE),
    Route("POST", f"{PLAYBOOK}/cases", WRITE, {"content": '{{"question": "1+1?", "target": "2"}}'}),
    Route("POST", f"{PLAYBOOK}/cases/next", REPORT),
    Route("GET", f"{PLAYBOOK}/metrics", READ),
    Route("GET", f"{PLAYBOOK}/evidence", READ),
    Route("GET", f"{PLAYBOOK}/ledger", READ),
    Route("GET", f"{PLAYBOOK}/shares", READ),
    Route("POST", f"{PLAYBOOK}/shares", ACCOUNT, {"kind": "diff", "version": 1}),
    Route("DELETE", "/shares/{share}", ACCOUNT),
    Route("GET", f"{PLAYBOOK}/evolutions", READ),
    Route("POST", f"{PLAYBOOK}/evolutions", EVOLVE),
    Route("GET", JOB, READ),
    Route("POST", f"{JOB}/cancel", EVOLVE),
    Route("POST", f"{JOB}/retry", EVOLVE),
    Route("GET", "/sessions", READ),
    Route("POST", "/sessions", REPORT, {"title": "Without a playbook"}),
    Route("GET", SESSION, READ),
    Route("DELETE", SESSION, WRITE),
    Route("GET", f"{SESSION}/messages", READ),
    Route("POST", f"{SESSION}/messages", REPORT, {"messages": [{"role": "user", "content": "a"}]}),
    Route("POST", f"{SESSION}/close", REPORT, {"outcome": "success"}),
    Route("GET", "/search", READ),
    Route("GET", "/billing/usage", READ),
    Route("GET", "/billing/budgets", READ),
    Route("PUT", "/billing/budgets", ACCOUNT, {"usd_per_day": "2.50"}),
    Route("PUT", "/billing/budgets/{playbook}", ACCOUNT, {"usd_per_month": "20"}),
    Route("GET", "/billing/subscription", ACCOUNT),
    Route("POST", "/billing/subscribe", ACCOUNT),
    Route("PUT", "/billing/overage", ACCOUNT),
    Route("POST", "/billing/portal", ACCOUNT),
    Route("POST", "/billing/webhook", None),
]
PROTECTED = [route for route in ROUTES if route.scope is not None]
OWNED = [route for route in ROUTES if route.is_owned]


@dataclass(frozen=True)
class World:
    """Rows of one owner, by the names that paths use; and a serving of the playbook."""

    ids: dict[str, str]
    serving_id: str
    token: str

    def path(self, route: Route) -> str:
        return route.path.format(**self.ids)

    def body(self, route: Route) -> dict[str, Any]:
        """The route's body with these rows where it names one."""
        named = {k: v.format(**self.ids) for k, v in route.body.items() if isinstance(v, str)}
        return {**route.body, **named}


def make_world(owner: User, *, canary: str = CANARY) -> World:
    """A playbook with an outcome and a queued evolution, and an API key; the canary in each."""
    playbook = make_playbook(owner, name=f"Playbook {canary}")
    outcome = make_outcome(playbook, owner, notes=canary, reasoning_trace=canary, ref="abc123")
    who = Principal.of(owner)
    job = trigger_evolution(playbook=playbook, by=who).job
    key, token = make_key(owner, name=f"key {canary}")
    review = make_review_item(playbook, f"Read https://{canary}.example/a first.")
    ids = {"playbook": str(playbook.pk), "job": str(job.pk), "key": str(key.pk)}
    ids["outcome"] = str(outcome.pk)
    ids |= {"review": str(review.pk), "owner": str(owner.pk)}
    trial = start_trial(playbook=playbook, by=who, kind="bare")
    ids["trial"] = str(stop_trial(trial=trial, by=who).pk)
    ids["share"] = str(create_share_link(playbook=playbook, by=who, kind="evidence")[0].pk)
    set_webhook(user=owner, url="https://93.184.216.34/")
    said = (("user", f"Do it {canary}"), ("assistant", canary))
    ids["session"] = str(make_session(owner, playbook, *said, title=canary).pk)
    return World(ids, read_playbook(playbook=playbook, by=who).serving_id, token)


def served() -> Iterator[tuple[str, str, Scope | None]]:
    """Method, pattern and declared scope of every route under /api/v1 that the server knows."""
    (root,) = (p for p in get_resolver().url_patterns if str(p.pattern) == "api/v1/")
    yield from _walk(root, "")


def _walk(node: Any, prefix: str) -> Iterator[tuple[str, str, Scope | None]]:
    for entry in node.url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from _walk(entry, path)
        elif isinstance(entry, URLPattern):
            yield from ((method, path, scope) for method, scope in _scopes(entry.callback))


def _scopes(callback: Any) -> Iterator[tuple[str, Scope | None]]:
    """Methods and scopes of the operations of a viewset."""
    for method, name in getattr(callback, "actions", {}).items():
        if method != "head":
            yield method.upper(), getattr(callback.cls, name).scope


def access_token(user: User) -> str:
    return issue_tokens(user=user).access
