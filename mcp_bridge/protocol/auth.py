"""Authenticates MCP calls: a bearer token per HTTP request, ACE_API_KEY on stdio."""

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

from django.conf import settings
from starlette.datastructures import Headers
from starlette.types import Scope as Connection

from accounts.keys.authentication import principal_for_bearer, principal_for_key
from accounts.oauth.connections import is_app_token, principal_for_app
from accounts.oauth.metadata import (
    is_oauth_available,
    mcp_resource,
    public_origin,
    resource_metadata_url,
)
from core.errors import InvalidCredential
from core.http.requests import user_agent_product
from core.security.scopes import AGENT_SCOPES, KEY_SCOPES, Principal

if TYPE_CHECKING:  # the connect page imports this module; the SDK takes a second to load
    from mcp.server.context import ServerRequestContext

PRINCIPAL_KEY = "ace.principal"
# True where /mcp is served without the pages: OAuth's metadata is at PUBLIC_URL then.
STANDALONE_KEY = "ace.standalone"
DESCRIPTIONS = {
    "invalid_token": "The credential is not valid.",
    "insufficient_scope": "The credential lacks a scope.",
}


# The context of one run of the server is the key of stdio, or "" over HTTP.
RequestContext: TypeAlias = "ServerRequestContext[str, Any]"


def bearer_token(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The token of the only `Authorization: Bearer` header, else None."""
    values = [value for name, value in headers if name == b"authorization"]
    if len(values) != 1:
        return None
    scheme, _, token = values[0].decode("latin-1").strip().partition(" ")
    return token.strip() or None if scheme.lower() == "bearer" else None


def authenticate_token(token: str, connection: Connection) -> Principal:
    """The principal of an API key, a JWT of ours or a connected app's token; one query.

    Raises InvalidCredential. A connected app's token is accepted at /mcp only: it is its audience.
    """
    if not is_app_token(token):
        return principal_for_bearer(token)
    origin = _origin_of(connection)
    if not is_oauth_available(origin):
        raise InvalidCredential
    return principal_for_app(token=token, resource=mcp_resource(origin))


def www_authenticate(
    connection: Connection, *, error: str = "", scopes: Collection[str] = AGENT_SCOPES
) -> str:
    """The `WWW-Authenticate` of RFC 6750, with RFC 9728 metadata where OAuth is available.

    `error` is the reason why a credential was refused; `scopes` are those that the request needs.
    """
    scope_list = " ".join(scope for scope in KEY_SCOPES if scope in scopes)
    parts = ['realm="ACE Platform"', f'scope="{scope_list}"']
    if error:
        parts += [f'error="{error}"', f'error_description="{DESCRIPTIONS[error]}"']
    origin = _origin_of(connection)
    if is_oauth_available(origin) and not (
        connection.get(STANDALONE_KEY) and not settings.PUBLIC_URL
    ):
        parts.append(f'resource_metadata="{resource_metadata_url(origin)}"')
    return "Bearer " + ", ".join(parts)


def _origin_of(connection: Connection) -> str:
    """The origin of the request's URL, by the same rule as for pages."""
    headers = Headers(scope=connection)
    proxied = settings.HTTPS and headers.get("x-forwarded-proto") == "https"
    scheme = "https" if proxied else str(connection.get("scheme", "http"))
    return public_origin(scheme, headers.get("host", ""))


def principal_getter(context: RequestContext) -> Callable[[], Principal]:
    """A function that returns the caller; run it on a database thread.

    Over HTTP it is the request's Admission, which raises RequestRefused. On stdio the key is looked
    up at every call, so that a revoked key is refused at the next one with InvalidCredential.
    """
    request, params, client = context.request, context.session.client_params, ""
    if params is not None:
        client = f"{params.client_info.name} {params.client_info.version}"
    elif request is not None:
        # Revisions before 2026-07-28 name the client in `initialize` only; no session is kept.
        client = user_agent_product(request.headers.get("user-agent", ""))
    if request is None:
        api_key = context.lifespan_context
        return lambda: principal_for_key(api_key).with_client(client)
    admission: Callable[[], Principal] = request.scope[PRINCIPAL_KEY]
    return lambda: admission().with_client(client)
