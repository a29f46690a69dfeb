"""Scopes of credentials, and the principal of a request. Scopes deny by default."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Union
from uuid import UUID

from core.errors import Forbidden

if TYPE_CHECKING:
    from django.contrib.auth.models import _User as User


class Scope(StrEnum):
    """READ, WRITE and EVOLVE can be granted to API keys; ACCOUNT is for users only."""

    READ = "read"
    WRITE = "write"
    EVOLVE = "evolve"
    ACCOUNT = "account"


KEY_SCOPES = (Scope.READ, Scope.WRITE, Scope.EVOLVE)
MAX_CLIENT = 100


def clean_client_name(name: str, *, most: int = MAX_CLIENT) -> str:
    """The name that a client gives itself, without line breaks and invisible characters."""
    words = "".join(letter if letter.isprintable() else " " for letter in name[: 4 * most]).split()
    return " ".join(words)[:most].strip()


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

    @classmethod
    def of(cls, who: Union["User", "Principal"]) -> "Principal":
        """The principal of a user with a session or an access token: all scopes."""
        return who if isinstance(who, Principal) else cls(who, frozenset(Scope))

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
