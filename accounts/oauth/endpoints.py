"""What clients call: who we are, registering, tokens, and giving tokens back."""

from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse

from accounts.errors import AceError, RateLimited
from accounts.http import client_address
from accounts.limits import take_rate
from accounts.oauth.authorization import core
from accounts.oauth.clients import MAX_DOCUMENT_BYTES, Registered, read_metadata, register_client
from accounts.oauth.doors import endpoint, has_nul, problem
from accounts.oauth.offers import origin_of_request, resource_metadata, server_metadata


@endpoint("GET")
def server(request: HttpRequest) -> HttpResponseBase:
    """RFC 8414. Clients that know only /mcp ask with that path; the answer is the same."""
    return JsonResponse(server_metadata(origin_of_request(request)))


@endpoint("GET")
def resource(request: HttpRequest) -> HttpResponseBase:
    """RFC 9728."""
    return JsonResponse(resource_metadata(origin_of_request(request)))


@endpoint("POST")
def register(request: HttpRequest) -> HttpResponseBase:
    """RFC 7591; there is nothing to manage afterwards, so no RFC 7592."""
    if len(request.body) > MAX_DOCUMENT_BYTES:
        return problem("invalid_client_metadata", f"Over {MAX_DOCUMENT_BYTES} bytes.", status=413)
    try:
        made = register_client(
            metadata=read_metadata(request.body), address=client_address(request)
        )
    except RateLimited as error:
        return _later(error)
    except AceError as error:
        return problem(error.code, error.message)
    return JsonResponse(_registered(made), status=201)


@endpoint("POST")
def token(request: HttpRequest) -> HttpResponseBase:
    """A code or a refresh token for a pair of tokens; see grants.py for why in one transaction."""
    if has_nul(request.POST):
        return problem("invalid_request", "Remove the NUL characters.")
    try:
        take_rate("oauth_token", client_address(request))
    except RateLimited as error:
        return _later(error)
    with transaction.atomic():
        _, headers, body, status = core().create_token_response(request)
    return _answer(body, status, headers)


@endpoint("POST")
def revoke(request: HttpRequest) -> HttpResponseBase:
    """RFC 7009: with either token of a pair both are gone; an unknown one is no error."""
    if has_nul(request.POST):
        return problem("invalid_request", "Remove the NUL characters.")
    with transaction.atomic():
        _, headers, body, status = core().create_revocation_response(request)
    return _answer(body or "", status, headers)


def _later(error: RateLimited) -> HttpResponse:
    response = problem("temporarily_unavailable", error.message, status=error.status)
    response["Retry-After"] = str(error.retry_after)
    return response


def _registered(made: Registered) -> dict[str, Any]:
    client = made.client
    secret = {"client_secret": made.secret, "client_secret_expires_at": 0} if made.secret else {}
    return {
        "client_id": client.client_id,
        "client_id_issued_at": int(client.created.timestamp()),
        "client_name": client.name,
        "redirect_uris": client.redirect_uris.split(),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": made.auth_method,
        **secret,
    }


def _answer(body: str, status: int, headers: dict[str, str]) -> HttpResponse:
    response = HttpResponse(body, status=status, content_type="application/json")
    if "WWW-Authenticate" in headers:
        response["WWW-Authenticate"] = headers["WWW-Authenticate"]
    return response
