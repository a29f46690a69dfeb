"""The HTTP rules of /mcp, checked on every request before the SDK sees it."""

from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError
from django.http.request import split_domain_port, validate_host
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from accounts import services as accounts
from accounts.errors import AceError, NotAuthenticated
from accounts.scopes import Principal
from mcp_bridge.auth import PRINCIPAL, bearer_token, challenge
from mcp_bridge.db import threads
from mcp_bridge.errors import REQUEST_ID


class Refused(Exception):
    """An answer in place of the protocol's."""

    def __init__(self, status: int, code: str, message: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, headers


class Door:
    """Lets in requests with our Host, a known Origin or none, POST, and a valid credential."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            _check_source(scope)
            principal = await _authenticate(scope)
            _check_method(scope)
        except Refused as refused:
            await _answer(refused, scope)(scope, receive, send)
            return
        await self.app({**scope, PRINCIPAL: principal}, receive, send)


def _check_source(scope: Scope) -> None:
    headers = Headers(scope=scope)
    host, origin = headers.get("host", ""), headers.get("origin")
    if not _is_our_host(host):
        raise Refused(421, "wrong_host", "Add this host name to ALLOWED_HOSTS.")
    if origin is not None and not _is_known_origin(origin, host):
        raise Refused(403, "wrong_origin", "Add this origin to CORS_ALLOWED_ORIGINS.")


def _check_method(scope: Scope) -> None:
    if scope["method"] != "POST":
        # No session and no subscription: a GET stream would carry nothing and block a shutdown.
        raise Refused(405, "method_not_allowed", "Send JSON-RPC by POST.", Allow="POST")


def _is_our_host(host: str) -> bool:
    domain, _port = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _is_known_origin(origin: str, host: str) -> bool:
    """Listed, or the page came from this very host (which is one of ours)."""
    if origin in settings.CORS_ALLOWED_ORIGINS:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and parts.netloc.lower() == host.lower()


async def _authenticate(scope: Scope) -> Principal:
    """Who calls, looked up anew for every request, so that revoking acts on the next one."""
    token = bearer_token(scope["headers"])
    came = any(name == b"authorization" for name, _value in scope["headers"])
    try:
        if token is None:
            raise NotAuthenticated
        return await threads.run(lambda: accounts.principal_for_bearer(token))
    except NotAuthenticated as error:
        headers = {"WWW-Authenticate": challenge(refused=came)}
        raise Refused(error.status, error.code, error.message, **headers) from None
    except AceError as error:
        raise Refused(error.status, error.code, error.message) from None
    except DatabaseError:
        wait = {"Retry-After": "1"}
        raise Refused(503, "unavailable", "The database does not answer.", **wait) from None


def _answer(refused: Refused, scope: Scope) -> JSONResponse:
    error = {"code": refused.code, "message": refused.message}
    return JSONResponse(
        {"error": error, "request_id": scope.get(REQUEST_ID, "-")},
        status_code=refused.status,
        headers={**refused.headers, "Cache-Control": "no-store"},
    )
