"""The question that a client's browser brings: checked in full before anybody is asked."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from oauth2_provider.models import Application
from oauth2_provider.settings import oauth2_settings
from oauthlib.oauth2.rfc6749.errors import (
    FatalClientError,
    InvalidClientIdError,
    OAuth2Error,
)

from accounts.oauth.metadata import mcp_resource, request_origin, same_resource
from accounts.oauth.validators import OAuthBackend
from core.errors import Invalid

CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
MAX_STATE = 2000


@dataclass(frozen=True)
class AuthorizationRequest:
    """Which client wants which scopes, and where its answer goes; all of it checked."""

    client: Application
    redirect_uri: str
    scopes: list[str]
    credentials: dict[str, Any]


class AuthorizationError(Exception):
    """The client is told why at its own redirect URI."""

    def __init__(self, location: str) -> None:
        super().__init__("declined")
        self.location = location


def parse_authorization_request(request: HttpRequest) -> AuthorizationRequest:
    """What the query string asks for.

    Raises Invalid when there is nobody to answer (an unknown client, a redirect URI that is not
    its own): that is a page, never a redirect. Raises Declined for everything else.
    """
    backend = oauth_backend()
    try:
        uri, _, _, headers = backend._extract_params(request)
        # Of the query alone, also when the answer is posted: a body cannot change the question.
        scopes, credentials = backend.server.validate_authorization_request(uri, "GET", "", headers)
    except InvalidClientIdError:
        raise _invalid_request(
            "This server does not know it (any more). Remove and add it there"
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
        raise _invalid_request("The address cannot be read.") from None
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
    """A code for these scopes has been made; the address that brings it to the client."""
    agreed = [scope for scope in wanted.scopes if scope in scopes]
    backend = oauth_backend()
    uri, _, _, headers = backend._extract_params(request)
    made, _, _ = backend.server.create_authorization_response(
        uri, "GET", "", headers, agreed, {**wanted.credentials, "user": request.user}
    )
    return f"{made['Location']}&{urlencode({'iss': request_origin(request)})}"


def deny(request: HttpRequest, wanted: AuthorizationRequest) -> str:
    """The address that tells the client no."""
    said = [("error", "access_denied"), ("error_description", "The person said no.")]
    return _redirect_location(request, wanted.redirect_uri, [*said, *_state(wanted)])


def _check(request: HttpRequest, wanted: AuthorizationRequest) -> None:
    """S256 and nothing else, and for nothing but /mcp. Raises Declined."""
    asked = wanted.credentials
    if asked.get("code_challenge_method") != "S256" or not CHALLENGE.fullmatch(
        asked.get("code_challenge") or ""
    ):
        _decline(request, wanted, "invalid_request", "Send an S256 code_challenge.")
    if len(asked.get("state") or "") > MAX_STATE:
        _decline(request, wanted, "invalid_request", "The state is too long.", echo=False)
    known = [mcp_resource(request_origin(request))]
    if not all(same_resource(uri, known=known) for uri in request.GET.getlist("resource")):
        _decline(request, wanted, "invalid_target", f"The resource here is {known[0]}.")


def _decline(
    request: HttpRequest, wanted: AuthorizationRequest, code: str, why: str, *, echo: bool = True
) -> None:
    said = [("error", code), ("error_description", why), *(_state(wanted) if echo else [])]
    raise AuthorizationError(_redirect_location(request, wanted.redirect_uri, said))


def _state(wanted: AuthorizationRequest) -> list[tuple[str, str]]:
    state = wanted.credentials.get("state")
    return [("state", state)] if state else []


def _redirect_location(request: HttpRequest, redirect_uri: str, said: list[tuple[str, str]]) -> str:
    """With `iss`, so that a client with several servers knows which one answers (RFC 9207)."""
    query = urlencode([*said, ("iss", request_origin(request))])
    return f"{redirect_uri}{'&' if '?' in redirect_uri else '?'}{query}"


def _invalid_request(reason: str) -> Invalid:
    message = f"An app sent you here with a request that cannot be answered: {reason}"
    return Invalid(f"{message.rstrip('.')}. Start again from the app.", code="bad_app_request")


def oauth_backend() -> OAuthBackend:
    return OAuthBackend(
        oauth2_settings.OAUTH2_SERVER_CLASS(
            oauth2_settings.OAUTH2_VALIDATOR_CLASS(), **oauth2_settings.server_kwargs
        )
    )
