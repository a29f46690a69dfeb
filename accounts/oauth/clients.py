"""OAuth clients: registered dynamically (RFC 7591), or by a client ID metadata document.

No client is verified: the consent page shows its claims as such, and the user decides.
"""

import json
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn
from urllib.parse import urlsplit

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone
from oauth2_provider.models import Application

from accounts.keys.key_format import digest
from accounts.oauth.metadata import AUTH_METHODS
from accounts.oauth.redirect_uris import redirect_uri_problem
from core.errors import Invalid
from core.http import safe_http
from core.ratelimit.limits import consume_rate_limit
from core.security.scopes import clean_client_name

MAX_REDIRECTS, MAX_NAME, MAX_ID = 10, 100, 255
NAMELESS = "An app without a name"
MAX_DOCUMENT_BYTES, DOCUMENT_SECONDS = 16 * 1024, 5.0
FRESH_AT_LEAST, FRESH_AT_MOST = timedelta(minutes=5), timedelta(days=1)
MAX_AGE = re.compile(r"max-age\s*=\s*(\d{1,9})")


@dataclass(frozen=True)
class RegisteredClient:
    """A new client; `secret` is "" for a public one, and only its digest is stored."""

    client: Application
    secret: str
    auth_method: str


def register_client(*, metadata: Mapping[str, Any], address: str) -> RegisteredClient:
    """Register a client with this metadata.

    `address` is the client's, for the rate limit. Raises RateLimited, Invalid with the codes of
    RFC 7591.
    """
    consume_rate_limit("register_client", address)
    method = metadata.get("token_endpoint_auth_method", "client_secret_basic")
    if method not in AUTH_METHODS:
        _refuse(f"token_endpoint_auth_method must be one of {', '.join(AUTH_METHODS)}.")
    secret = "" if method == "none" else secrets.token_urlsafe(32)
    client = Application.objects.create(
        registration_source=Application.RegistrationSource.DCR,
        client_type=Application.CLIENT_CONFIDENTIAL if secret else Application.CLIENT_PUBLIC,
        client_secret=digest(secret) if secret else "",
        **_fields(metadata),
    )
    return RegisteredClient(client, secret, method)


def refresh_client_metadata(*, client_id: str, user_id: str) -> None:
    """Create or update the client from the metadata document at its id, an https URL.

    `user_id` is the consenting user, for the rate limit. Raises RateLimited, and Invalid if the
    document cannot be read and the client is not known from an earlier one.
    """
    if not settings.OAUTH_CLIENT_DOCUMENTS:
        return
    known = Application.objects.filter(client_id=client_id).first()
    expiry = known.cimd_expires_at if known is not None else timezone.now()
    if expiry is None or expiry > timezone.now():
        return
    consume_rate_limit("register_client", f"document:{user_id}")
    try:
        document, fresh = _read_document(client_id)
        fields = _fields(document)
    except Invalid as error:
        if known is None:
            raise _unknown(client_id, error) from None
        return
    fields |= {
        "registration_source": Application.RegistrationSource.CIMD,
        "client_type": Application.CLIENT_PUBLIC,
        "client_secret": "",
        "cimd_expires_at": timezone.now() + fresh,
    }
    # IntegrityError: two users connected the same new client at once; the other's row is the same.
    with suppress(IntegrityError), transaction.atomic():
        Application.objects.update_or_create(client_id=client_id, defaults=fields)


def is_metadata_document_id(client_id: str) -> bool:
    return client_id.startswith("https://")


def _unknown(client_id: str, error: Invalid) -> Invalid:
    host = urlsplit(client_id).hostname or "its address"
    message = (
        f"We could not read the metadata of the app that sent you from {host}. {error.message}"
    )
    hint = "Operators of servers without internet access set OAUTH_CLIENT_DOCUMENTS=false."
    return Invalid(f"{message} {hint}", code="unknown_app")


def _read_document(client_id: str) -> tuple[dict[str, Any], timedelta]:
    """The metadata at this URL and how long it is valid. Raises Invalid."""
    _check_id(client_id)
    response = safe_http.fetch(
        client_id,
        max_bytes=MAX_DOCUMENT_BYTES,
        seconds=DOCUMENT_SECONDS,
        private_hosts=settings.PRIVATE_HOSTS,
    )
    kind = response.headers.get("content-type", "").split(";")[0].strip().lower()
    if response.status != 200 or not re.fullmatch(r"application/([a-z0-9.+-]+\+)?json", kind):
        _refuse("The client's URL does not return its metadata as JSON.")
    document = read_metadata(response.body)
    if document.get("client_id") != client_id:
        _refuse("The client's metadata is for another URL.")
    if document.get("token_endpoint_auth_method", "none") != "none" or "client_secret" in document:
        _refuse("A client identified by its URL has no secret.")
    return document, _freshness(response.headers.get("cache-control", ""))


def _check_id(client_id: str) -> None:
    parts = urlsplit(client_id)
    dotted = {".", ".."} & set(parts.path.split("/"))
    plain = len(client_id) <= MAX_ID and not redirect_uri_problem(client_id)
    if not plain or dotted or parts.path in {"", "/"}:
        _refuse("The client's URL is not a valid client id.")


def _freshness(cache_control: str) -> timedelta:
    text = cache_control.lower()
    found = MAX_AGE.search(text)
    if "no-store" in text or "no-cache" in text:
        return FRESH_AT_LEAST
    asked = timedelta(seconds=int(found[1])) if found else FRESH_AT_MOST
    return max(FRESH_AT_LEAST, min(asked, FRESH_AT_MOST))


def read_metadata(body: bytes) -> dict[str, Any]:
    """The JSON object in these bytes. Raises Invalid (`invalid_client_metadata`)."""
    try:
        found = json.loads(body.decode())
    except (ValueError, RecursionError):
        _refuse("The metadata is not JSON in UTF-8.")
    if not isinstance(found, dict):
        _refuse("The metadata is not a JSON object.")
    return found


def _fields(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The fields to store. Raises Invalid."""
    grants = metadata.get("grant_types", ["authorization_code"])
    if not isinstance(grants, list) or "authorization_code" not in grants:
        _refuse("grant_types must include authorization_code.")
    types, name = metadata.get("response_types", ["code"]), metadata.get("client_name")
    if not isinstance(types, list) or "code" not in types:
        _refuse("response_types must include code.")
    return {
        "name": clean_client_name(name if isinstance(name, str) else "", most=MAX_NAME) or NAMELESS,
        "redirect_uris": " ".join(_redirects(metadata.get("redirect_uris"))),
        "authorization_grant_type": Application.GRANT_AUTHORIZATION_CODE,
        "hash_client_secret": False,
    }


def _redirects(value: object) -> list[str]:
    if not isinstance(value, list) or not 0 < len(value) <= MAX_REDIRECTS:
        _refuse(f"redirect_uris must be a list of 1 to {MAX_REDIRECTS}.", "invalid_redirect_uri")
    for uri in value:
        problem = redirect_uri_problem(str(uri), app_schemes=settings.OAUTH_APP_SCHEMES)
        if problem or not isinstance(uri, str):
            _refuse(problem or "Send strings.", "invalid_redirect_uri")
    return list(value)


def _refuse(message: str, code: str = "invalid_client_metadata") -> NoReturn:
    raise Invalid(message, code=code)
