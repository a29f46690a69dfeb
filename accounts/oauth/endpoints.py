"""The endpoints that clients call: metadata, registration, tokens, revocation."""

from collections.abc import Callable
from functools import wraps

from django.db import transaction
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    QueryDict,
)
from django.views.decorators.csrf import csrf_exempt
from oauth2_provider.oauth2_backends import get_oauthlib_core

from accounts.oauth.clients import MAX_DOCUMENT_BYTES, read_metadata, register_client
from accounts.oauth.metadata import (
    is_oauth_available,
    request_origin,
    resource_metadata,
    server_metadata,
)
from core.errors import AceError, Invalid, RateLimited, TooLarge
from core.http.requests import client_address
from core.ratelimit.limits import consume_rate_limit

View = Callable[..., HttpResponseBase]
HEADERS = "Authorization, Content-Type, MCP-Protocol-Version"


def require_oauth_enabled(view: View) -> View:
    """404 where OAuth is disabled or would not work."""

    @wraps(view)
    def checked(request: HttpRequest) -> HttpResponseBase:
        if not is_oauth_available(request_origin(request)):
            raise Http404
        return view(request)

    return checked


def oauth_endpoint(method: str) -> Callable[[View], View]:
    """An endpoint for programs: one method, no cookies and so no CSRF, any origin, no caching."""

    def wrap(view: View) -> View:
        @csrf_exempt
        @require_oauth_enabled
        @wraps(view)
        def opened(request: HttpRequest) -> HttpResponseBase:
            allowed = {method, "OPTIONS"} | ({"HEAD"} if method == "GET" else set())
            if request.method == "OPTIONS":
                response: HttpResponseBase = HttpResponse(status=204)
            elif request.method in allowed:
                response = _answer(view, request)
            else:
                response = oauth_error("invalid_request", f"Send {method}.", status=405)
                response["Allow"] = ", ".join(sorted(allowed))
            response["Access-Control-Allow-Origin"] = "*"
            response["Access-Control-Allow-Methods"] = f"{method}, OPTIONS"
            response["Access-Control-Allow-Headers"] = HEADERS
            response["Cache-Control"] = "no-store"
            return response

        return opened

    return wrap


@oauth_endpoint("GET")
def server(request: HttpRequest) -> HttpResponseBase:
    """RFC 8414; also at the path with /mcp, where clients that know only /mcp look."""
    return JsonResponse(server_metadata(request_origin(request)))


@oauth_endpoint("GET")
def resource(request: HttpRequest) -> HttpResponseBase:
    """RFC 9728."""
    return JsonResponse(resource_metadata(request_origin(request)))


@oauth_endpoint("POST")
def register(request: HttpRequest) -> HttpResponseBase:
    """RFC 7591; clients cannot be changed later, so no RFC 7592."""
    if len(request.body) > MAX_DOCUMENT_BYTES:
        raise TooLarge(f"Send at most {MAX_DOCUMENT_BYTES} bytes.", code="invalid_client_metadata")
    metadata = read_metadata(request.body)
    registered = register_client(metadata=metadata, address=client_address(request))
    client, secret = registered.client, registered.secret
    body = {
        "client_id": client.client_id,
        "client_id_issued_at": int(client.created.timestamp()),
        "client_name": client.name,
        "redirect_uris": client.redirect_uris.split(),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": registered.auth_method,
    }
    if secret:
        body |= {"client_secret": secret, "client_secret_expires_at": 0}
    return JsonResponse(body, status=201)


@oauth_endpoint("POST")
def token(request: HttpRequest) -> HttpResponseBase:
    """Exchange a code or a refresh token; in one transaction, see validators.py."""
    _refuse_nul(request.POST)
    consume_rate_limit("oauth_token", client_address(request))
    with transaction.atomic():
        _, headers, body, status = get_oauthlib_core().create_token_response(request)
    return _json_response(body, status, headers)


@oauth_endpoint("POST")
def revoke(request: HttpRequest) -> HttpResponseBase:
    """RFC 7009: either token of a pair revokes both; an unknown one is no error."""
    _refuse_nul(request.POST)
    with transaction.atomic():
        _, headers, body, status = get_oauthlib_core().create_revocation_response(request)
    return _json_response(body or "", status, headers)


def contains_nul(sent: QueryDict) -> bool:
    """True if a value has a NUL character, which PostgreSQL cannot store."""
    return any("\x00" in value for _, values in sent.lists() for value in values)


def oauth_error(code: str, description: str, *, status: int = 400) -> JsonResponse:
    """An error response as in RFC 6749 and RFC 7591."""
    return JsonResponse({"error": code, "error_description": description}, status=status)


def _answer(view: View, request: HttpRequest) -> HttpResponseBase:
    try:
        return view(request)
    except RateLimited as error:
        response = oauth_error("temporarily_unavailable", error.message, status=error.status)
        response["Retry-After"] = error.headers["Retry-After"]
        return response
    except AceError as error:
        return oauth_error(error.code, error.message, status=error.status)


def _refuse_nul(sent: QueryDict) -> None:
    if contains_nul(sent):
        raise Invalid("Remove the NUL characters.", code="invalid_request")


def _json_response(body: str, status: int, headers: dict[str, str]) -> HttpResponse:
    response = HttpResponse(body, status=status, content_type="application/json")
    if "WWW-Authenticate" in headers:
        response["WWW-Authenticate"] = headers["WWW-Authenticate"]
    return response
