"""Scopes of credentials, and the principal of a request. Scopes deny by default."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Union
from uuid import UUID

from core.errors import Forbidden

if TYPE_CHECKING:
    from django.contrib.auth.models import _User as User


class Scope(StrEnum):
    """All but ACCOUNT, which is for users only, can be granted to API keys and apps.

    REPORT includes READ, and WRITE includes REPORT.
    """

    READ = "read"
    REPORT = "report"
    WRITE = "write"
    EVOLVE = "evolve"
    ACCOUNT = "account"


KEY_SCOPES = (Scope.READ, Scope.REPORT, Scope.WRITE, Scope.EVOLVE)
AGENT_SCOPES = (Scope.READ, Scope.REPORT)
"""What an agent needs; handed out where nobody chooses."""
SCOPE_TEXTS = {
    Scope.READ: "Read: list and read playbooks, follow evolutions",
    Scope.REPORT: "Report: read, and report outcomes and sessions. All an agent needs",
    Scope.WRITE: "Write: report, and create, edit and roll back playbooks."
    " Links, commands and instructions in new texts wait for your review",
    Scope.EVOLVE: "Evolve: start evolutions and set when they start, which may cost money",
}
INCLUDED = {
    Scope.REPORT: frozenset({Scope.READ}),
    Scope.WRITE: frozenset({Scope.READ, Scope.REPORT}),
}
MAX_CLIENT = 100


def clean_client_name(name: str, *, most: int = MAX_CLIENT) -> str:
    """The name that a client gives itself, without line breaks and invisible characters."""
    words = "".join(letter if letter.isprintable() else " " for letter in name[: 4 * most]).split()
    return " ".join(words)[:most].strip()


def granted_scopes(names: Iterable[str]) -> frozenset[Scope]:
    """The scopes that these names grant, included ones too; names of no key scope grant none."""
    named = {scope for scope in KEY_SCOPES if scope in set(names)}
    return frozenset(named.union(*(INCLUDED.get(scope, ()) for scope in named)))


@dataclass(frozen=True)
class Principal:
    """A user together with what the credential in use allows.

    `playbook_ids` is None for all playbooks of the user. `client` is the name that the calling
    program gives itself ("claude-code 2.1"): to be shown, never trusted. `app` is the connected
    app whose token was sent.
    """

    user: "User"
    scopes: frozenset[Scope]
    # An ApiKey and a ConnectedApp: models of accounts, which core does not import.
    api_key: Any = None
    playbook_ids: frozenset[UUID] | None = None
    client: str = ""
    app: Any = None
    # When the password was given: of an access token, which a refresh does not renew.
    login_at: datetime | None = None

    @classmethod
    def of(cls, who: Union["User", "Principal"]) -> "Principal":
        """The principal of a user with a session or an access token: all scopes."""
        return who if isinstance(who, Principal) else cls(who, frozenset(Scope))

    @property
    def source(self) -> str:
        """`key:<id>` or `app:<id>` of the credential in use, else `user:<id>`."""
        kinds = {"key": self.api_key, "app": self.app, "user": self.user}
        return next(f"{kind}:{row.pk}" for kind, row in kinds.items() if row is not None)

    @property
    def source_name(self) -> str:
        """The name of the key or app in use; empty for a person."""
        named = self.api_key or self.app
        return "" if named is None else str(named.name)

    @property
    def is_person(self) -> bool:
        """True for a session or an access token: nobody handed out a key or let in an app."""
        return self.api_key is None and self.app is None

    def with_client(self, name: str) -> "Principal":
        """The same principal with the name of the calling program, cleaned and cut."""
        return replace(self, client=clean_client_name(name))

    def require(self, scope: Scope) -> None:
        """Raise Forbidden (`insufficient_scope`) unless the credential has `scope`."""
        if scope not in self.scopes:
            raise Forbidden(
                f"This credential lacks the scope `{scope}`. Use one that has it.",
                code="insufficient_scope",
            )
