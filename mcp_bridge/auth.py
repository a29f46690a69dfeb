"""Who calls: a bearer token on every HTTP request, the key of the environment on stdio."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext

from accounts import services as accounts
from accounts.http import product_of
from accounts.scopes import KEY_SCOPES, Principal

PRINCIPAL = "ace.principal"


@dataclass(frozen=True)
class Session:
    """What one run of the server knows: the key of stdio, or "" where each request brings one."""

    api_key: str = ""


Context = ServerRequestContext[Session, Any]


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


def identify(context: Context) -> Callable[[], Principal]:
    """How to learn who makes this call; run it on a database thread.

    Over HTTP the request was let in by its own credential. On stdio the key is looked up at every
    call, so that a revoked one stops at the next; raises NotAuthenticated then.
    """
    request, client = context.request, client_of(context)
    if request is None:
        api_key = context.lifespan_context.api_key
        return lambda: accounts.principal_for_key(api_key).with_client(client)
    principal: Principal = request.scope[PRINCIPAL].with_client(client)
    return lambda: principal


def client_of(context: Context) -> str:
    """The program that calls: what it says of itself in the protocol, else its `User-Agent`.

    Revisions before 2026-07-28 say it once, in `initialize`, and we keep no session.
    """
    params, request = context.session.client_params, context.request
    if params is not None:
        return f"{params.client_info.name} {params.client_info.version}"
    return "" if request is None else product_of(request.headers.get("user-agent", ""))
