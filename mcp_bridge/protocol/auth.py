"""Who calls: a bearer token on every HTTP request, the key of the environment on stdio."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from mcp.server.context import ServerRequestContext
from starlette.datastructures import Headers
from starlette.types import Scope as Connection

from accounts.keys.credentials import principal_for_bearer, principal_for_key
from accounts.oauth.connections import is_app_token, principal_for_app
from accounts.oauth.metadata import (
    is_oauth_available,
    mcp_resource,
    public_origin,
    resource_metadata_url,
)
from core.errors import NotAuthenticated
from core.http.requests import user_agent_product
from core.security.scopes import KEY_SCOPES, Principal

PRINCIPAL_KEY = "ace.principal"
# Set where /mcp is served without the pages: OAuth's documents are elsewhere, at PUBLIC_URL.
STANDALONE_KEY = "ace.alone"
DESCRIPTIONS = {
    "invalid_token": "The credential is not valid.",
    "insufficient_scope": "The credential lacks a scope.",
}


@dataclass(frozen=True)
class ServerContext:
    """What one run of the server knows: the key of stdio, or "" where each request brings one."""

    api_key: str = ""


RequestContext = ServerRequestContext[ServerContext, Any]


def bearer_token(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The token of the one `Authorization: Bearer` header, else None."""
    given = [value for name, value in headers if name == b"authorization"]
    if len(given) != 1:
        return None
    scheme, _, token = given[0].decode("latin-1").strip().partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def authenticate_token(token: str, connection: Connection) -> Principal:
    """Who sends this API key, access token of ours or token of a connected app; one query.

    Raises NotAuthenticated. Only here does an app's token count: /mcp is what it was given for.
    """
    if not is_app_token(token):
        return principal_for_bearer(token)
    origin = _origin_of(connection)
    if not is_oauth_available(origin):
        raise NotAuthenticated
    return principal_for_app(token=token, resource=mcp_resource(origin))


def www_authenticate(
    connection: Connection, *, error: str = "", scopes: Collection[str] = KEY_SCOPES
) -> str:
    """The `WWW-Authenticate` of RFC 6750, and of RFC 9728 where people can log in by browser.

    `error` is for a credential that came and did not do; `scopes` what the request needs.
    """
    words = " ".join(scope for scope in KEY_SCOPES if scope in scopes)
    parts = ['realm="ACE Platform"', f'scope="{words}"']
    if error:
        parts += [f'error="{error}"', f'error_description="{DESCRIPTIONS[error]}"']
    origin = _origin_of(connection)
    if is_oauth_available(origin) and not (
        connection.get(STANDALONE_KEY) and not settings.PUBLIC_URL
    ):
        parts.append(f'resource_metadata="{resource_metadata_url(origin)}"')
    return "Bearer " + ", ".join(parts)


def _origin_of(connection: Connection) -> str:
    """The address that this request came to, as Django tells it for pages."""
    headers = Headers(scope=connection)
    proxied = settings.HTTPS and headers.get("x-forwarded-proto") == "https"
    scheme = "https" if proxied else str(connection.get("scheme", "http"))
    return public_origin(scheme, headers.get("host", ""))


def principal_getter(context: RequestContext) -> Callable[[], Principal]:
    """How to learn who makes this call; run it on a database thread.

    Over HTTP the request was let in by its own credential. On stdio the key is looked up at every
    call, so that a revoked one stops at the next; raises NotAuthenticated then.
    """
    request, client = context.request, client_name_of(context)
    if request is None:
        api_key = context.lifespan_context.api_key
        return lambda: principal_for_key(api_key).with_client(client)
    principal: Principal = request.scope[PRINCIPAL_KEY].with_client(client)
    return lambda: principal


def client_name_of(context: RequestContext) -> str:
    """The program that calls: what it says of itself in the protocol, else its `User-Agent`.

    Revisions before 2026-07-28 say it once, in `initialize`, and we keep no session.
    """
    params, request = context.session.client_params, context.request
    if params is not None:
        return f"{params.client_info.name} {params.client_info.version}"
    return "" if request is None else user_agent_product(request.headers.get("user-agent", ""))
