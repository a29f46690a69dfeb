"""What a credential may do, and who is asking. Scopes deny by default."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Union
from uuid import UUID

from core.errors import Forbidden

if TYPE_CHECKING:
    from django.contrib.auth.models import _User as User


class Scope(StrEnum):
    """READ, WRITE and EVOLVE can be given to an API key; ACCOUNT belongs to people only."""

    READ = "read"
    WRITE = "write"
    EVOLVE = "evolve"
    ACCOUNT = "account"


KEY_SCOPES = (Scope.READ, Scope.WRITE, Scope.EVOLVE)
MAX_CLIENT = 100


def clean_client_name(name: str, *, most: int = MAX_CLIENT) -> str:
    """A program's name for itself, without line breaks and what only changes how others read."""
    words = "".join(letter if letter.isprintable() else " " for letter in name).split()
    return " ".join(words)[:most].strip()


@dataclass(frozen=True)
class Principal:
    """A user together with what the credential in use allows.

    `playbook_ids` is None when every playbook of the user is in reach. `client` is the program
    that asks, as it calls itself ("claude-code 2.1"): to be shown, never to be trusted.
    `app` is the connected app whose token was sent.
    """

    user: "User"
    scopes: frozenset[Scope]
    # Rows of accounts, which core does not import: an ApiKey, a ConnectedApp.
    api_key: Any = None
    playbook_ids: frozenset[UUID] | None = None
    client: str = ""
    app: Any = None

    @classmethod
    def of(cls, who: Union["User", "Principal"]) -> "Principal":
        """A person at a page or with an access token may do everything that is theirs to do."""
        return who if isinstance(who, Principal) else cls(who, frozenset(Scope))

    def with_client(self, name: str) -> "Principal":
        """The same principal, asking through the program of this name (made printable, cut)."""
        return replace(self, client=clean_client_name(name))

    def require(self, scope: Scope) -> None:
        """Raise Forbidden (`insufficient_scope`) unless the credential carries `scope`."""
        if scope not in self.scopes:
            raise Forbidden(
                f"This credential lacks the scope `{scope}`. Use one that carries it.",
                code="insufficient_scope",
            )
