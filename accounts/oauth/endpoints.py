"""The endpoints that clients call: metadata, registration, tokens, revocation."""

from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse

from accounts.oauth.authorization import oauth_backend
from accounts.oauth.clients import (
    MAX_DOCUMENT_BYTES,
    RegisteredClient,
    read_metadata,
    register_client,
)
from accounts.oauth.http import contains_nul, oauth_endpoint, oauth_error
from accounts.oauth.metadata import request_origin, resource_metadata, server_metadata
from core.errors import AceError, RateLimited
from core.http.requests import client_address
from core.ratelimit.limits import consume_rate_limit


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
        return oauth_error(
            "invalid_client_metadata", f"Over {MAX_DOCUMENT_BYTES} bytes.", status=413
        )
    try:
        registered = register_client(
            metadata=read_metadata(request.body), address=client_address(request)
        )
    except RateLimited as error:
        return _rate_limited_response(error)
    except AceError as error:
        return oauth_error(error.code, error.message)
    return JsonResponse(_registration_body(registered), status=201)


@oauth_endpoint("POST")
def token(request: HttpRequest) -> HttpResponseBase:
    """Exchange a code or a refresh token; in one transaction, see validators.py."""
    if contains_nul(request.POST):
        return oauth_error("invalid_request", "Remove the NUL characters.")
    try:
        consume_rate_limit("oauth_token", client_address(request))
    except RateLimited as error:
        return _rate_limited_response(error)
    with transaction.atomic():
        _, headers, body, status = oauth_backend().create_token_response(request)
    return _json_response(body, status, headers)


@oauth_endpoint("POST")
def revoke(request: HttpRequest) -> HttpResponseBase:
    """RFC 7009: either token of a pair revokes both; an unknown one is no error."""
    if contains_nul(request.POST):
        return oauth_error("invalid_request", "Remove the NUL characters.")
    with transaction.atomic():
        _, headers, body, status = oauth_backend().create_revocation_response(request)
    return _json_response(body or "", status, headers)


def _rate_limited_response(error: RateLimited) -> HttpResponse:
    response = oauth_error("temporarily_unavailable", error.message, status=error.status)
    response["Retry-After"] = str(error.retry_after)
    return response


def _registration_body(registered: RegisteredClient) -> dict[str, Any]:
    client = registered.client
    secret = (
        {"client_secret": registered.secret, "client_secret_expires_at": 0}
        if registered.secret
        else {}
    )
    return {
        "client_id": client.client_id,
        "client_id_issued_at": int(client.created.timestamp()),
        "client_name": client.name,
        "redirect_uris": client.redirect_uris.split(),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": registered.auth_method,
        **secret,
    }


def _json_response(body: str, status: int, headers: dict[str, str]) -> HttpResponse:
    response = HttpResponse(body, status=status, content_type="application/json")
    if "WWW-Authenticate" in headers:
        response["WWW-Authenticate"] = headers["WWW-Authenticate"]
    return response
