"""Who calls: a bearer token on every HTTP request, the key of the environment on stdio."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from mcp.server.mcpserver import Context

from accounts import services as accounts
from accounts.scopes import KEY_SCOPES, Principal

PRINCIPAL = "ace.principal"


@dataclass(frozen=True)
class Session:
    """What one run of the server knows: the key of stdio, or "" where each request brings one."""

    api_key: str = ""


def bearer_token(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The token of the one `Authorization: Bearer` header, else None."""
    given = [value for name, value in headers if name == b"authorization"]
    if len(given) != 1:
        return None
    scheme, _, token = given[0].decode("latin-1").strip().partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def challenge(*, refused: bool) -> str:
    """The `WWW-Authenticate` of RFC 6750; `refused` when a credential came and was not valid."""
    parts = ['realm="ACE Platform"', f'scope="{" ".join(KEY_SCOPES)}"']
    if refused:
        parts += ['error="invalid_token"', 'error_description="The credential is not valid."']
    return "Bearer " + ", ".join(parts)


def identify(context: Context[Session, Any]) -> Callable[[], Principal]:
    """How to learn who makes this call; run it on a database thread.

    Over HTTP the request was let in by its own credential. On stdio the key is looked up at every
    call, so that a revoked one stops at the next; raises NotAuthenticated then.
    """
    request = context.request_context.request
    if request is None:
        return partial(accounts.principal_for_key, context.request_context.lifespan_context.api_key)
    principal: Principal = request.scope[PRINCIPAL]
    return lambda: principal
