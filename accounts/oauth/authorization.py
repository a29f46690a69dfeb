"""Authorization requests: validated in full before the consent page is shown."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from oauth2_provider.models import Application
from oauth2_provider.oauth2_backends import get_oauthlib_core
from oauthlib.oauth2.rfc6749.errors import FatalClientError, InvalidClientIdError, OAuth2Error

from accounts.oauth.metadata import mcp_resource, request_origin, same_resource
from core.errors import Invalid
from core.security.scopes import KEY_SCOPES, Scope, granted_scopes

CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
MAX_STATE = 2000


@dataclass(frozen=True)
class AuthorizationRequest:
    """A validated request: the client, the scopes it requests, and its redirect URI."""

    client: Application
    redirect_uri: str
    scopes: list[str]
    credentials: dict[str, Any]

    @property
    def offered(self) -> list[Scope]:
        """The requested scopes and those that they include, which a user may grant instead."""
        return [scope for scope in KEY_SCOPES if scope in granted_scopes(self.scopes)]


class AuthorizationError(Exception):
    """The request is invalid; `location` is the client's redirect URI with the error."""

    def __init__(self, location: str) -> None:
        super().__init__("invalid authorization request")
        self.location = location


def parse_authorization_request(request: HttpRequest) -> AuthorizationRequest:
    """The authorization request in the query string.

    Raises Invalid for an unknown client or a redirect URI that is not its own: the error is shown
    on a page, never sent by a redirect. Raises AuthorizationError for all other errors.
    """
    backend = get_oauthlib_core()
    try:
        uri, _, _, headers = backend._extract_params(request)
        # Only the query, also on POST: the body cannot change the request.
        scopes, credentials = backend.server.validate_authorization_request(uri, "GET", "", headers)
    except InvalidClientIdError:
        raise _invalid_request(
            "It is not registered here (anymore). Remove it there and add it again"
        ) from None
    except FatalClientError as error:
        raise _invalid_request(error.description or str(error)) from None
    except OAuth2Error as error:
        if not error.redirect_uri:
            raise _invalid_request(error.description or str(error)) from None
        raise AuthorizationError(
            _redirect_location(request, error.redirect_uri, error.twotuples)
        ) from None
    except ValueError:
        raise _invalid_request("The URL is malformed.") from None
    wanted = AuthorizationRequest(
        client=credentials.pop("request").client,
        redirect_uri=credentials["redirect_uri"],
        scopes=list(scopes),
        credentials=credentials,
    )
    _check(request, wanted)
    wanted.credentials["resource"] = [mcp_resource(request_origin(request))]
    return wanted


def issue_code(request: HttpRequest, wanted: AuthorizationRequest, scopes: Collection[str]) -> str:
    """Create a code for these scopes; returns the redirect to the client."""
    agreed = [scope for scope in wanted.offered if scope in scopes]
    backend = get_oauthlib_core()
    uri, _, _, headers = backend._extract_params(request)
    headers, _, _ = backend.server.create_authorization_response(
        uri, "GET", "", headers, agreed, {**wanted.credentials, "user": request.user}
    )
    return f"{headers['Location']}&{urlencode({'iss': request_origin(request)})}"


def deny(request: HttpRequest, wanted: AuthorizationRequest) -> str:
    """The redirect that reports the denial to the client."""
    return _error_location(request, wanted, "access_denied", "The user denied access.")


def _check(request: HttpRequest, wanted: AuthorizationRequest) -> None:
    """Require an S256 challenge and the resource /mcp. Raises AuthorizationError."""
    sent, code, why = wanted.credentials, "invalid_request", ""
    known = [mcp_resource(request_origin(request))]
    if len(sent.get("state") or "") > MAX_STATE:
        sent["state"], why = "", "The state is too long."
    elif sent.get("code_challenge_method") != "S256" or not CHALLENGE.fullmatch(
        sent.get("code_challenge") or ""
    ):
        why = "Send an S256 code_challenge."
    elif not all(same_resource(uri, known=known) for uri in request.GET.getlist("resource")):
        code, why = "invalid_target", f"The resource here is {known[0]}."
    if why:
        raise AuthorizationError(_error_location(request, wanted, code, why))


def _error_location(request: HttpRequest, wanted: AuthorizationRequest, code: str, why: str) -> str:
    error, state = [("error", code), ("error_description", why)], wanted.credentials.get("state")
    params = [*error, ("state", state)] if state else error
    return _redirect_location(request, wanted.redirect_uri, params)


def _redirect_location(
    request: HttpRequest, redirect_uri: str, params: list[tuple[str, str]]
) -> str:
    """The redirect URI with the parameters and `iss`, which names this server (RFC 9207)."""
    query = urlencode([*params, ("iss", request_origin(request))])
    return f"{redirect_uri}{'&' if '?' in redirect_uri else '?'}{query}"


def _invalid_request(reason: str) -> Invalid:
    message = f"The app that sent you here made an invalid request: {reason}"
    return Invalid(f"{message.rstrip('.')}. Start again from the app.", code="bad_app_request")
