"""Programs that ask to be let in: registered by themselves (RFC 7591), or known by their document.

Nothing here vouches for a client. What it calls itself is shown as such, and a person decides.
"""

import json
import re
import secrets
from collections.abc import Mapping
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
    """A new client; `secret` is "" for a public one, and kept by nobody but the client."""

    client: Application
    secret: str
    auth_method: str


def register_client(*, metadata: Mapping[str, Any], address: str) -> RegisteredClient:
    """A client with this metadata may ask people to be let in; nothing else of it is stored.

    `address` is the client's, for the limit. Raises RateLimited, Invalid with RFC 7591's codes.
    """
    consume_rate_limit("register_client", address)
    method = metadata.get("token_endpoint_auth_method", "client_secret_basic")
    if method not in AUTH_METHODS:
        _refuse(f"token_endpoint_auth_method is one of {', '.join(AUTH_METHODS)}.")
    secret = "" if method == "none" else secrets.token_urlsafe(32)
    client = Application.objects.create(
        registration_source=Application.RegistrationSource.DCR,
        client_type=Application.CLIENT_CONFIDENTIAL if secret else Application.CLIENT_PUBLIC,
        client_secret=digest(secret) if secret else "",
        **_fields(metadata),
    )
    return RegisteredClient(client, secret, method)


def refresh_client_metadata(*, client_id: str, person: str) -> None:
    """The client at this https address is known as its document says now, or not at all.

    `person` is who is asked to let it in, for the limit. Raises RateLimited, and Invalid unless an
    earlier reading of the document stands in for one that cannot be had.
    """
    if not settings.OAUTH_CLIENT_DOCUMENTS:
        return
    known = Application.objects.filter(client_id=client_id).first()
    if known is not None and not _is_stale(known):
        return
    consume_rate_limit("register_client", f"document:{person}")
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
    _store(client_id, fields)


def client_exists(client_id: str) -> bool:
    return bool(Application.objects.filter(client_id=client_id).exists())


def is_metadata_document_id(client_id: str) -> bool:
    return client_id.startswith("https://")


def _unknown(client_id: str, error: Invalid) -> Invalid:
    host = urlsplit(client_id).hostname or "its address"
    message = f"We could not learn from {host} which app sent you. {error.message}"
    hint = "Without a way out to the internet, the operator sets OAUTH_CLIENT_DOCUMENTS=false."
    return Invalid(f"{message} {hint}", code="unknown_app")


def _store(client_id: str, fields: dict[str, Any]) -> None:
    try:
        with transaction.atomic():
            Application.objects.update_or_create(client_id=client_id, defaults=fields)
    except IntegrityError:
        # Two people met the same new client at once: the other's row says the same.
        return


def _is_stale(client: Application) -> bool:
    return client.cimd_expires_at is not None and client.cimd_expires_at <= timezone.now()


def _read_document(client_id: str) -> tuple[dict[str, Any], timedelta]:
    """The metadata at this address and how long it holds. Raises Invalid, Unreachable."""
    _check_id(client_id)
    answer = safe_http.fetch(
        client_id,
        max_bytes=MAX_DOCUMENT_BYTES,
        seconds=DOCUMENT_SECONDS,
        private_hosts=settings.PRIVATE_HOSTS,
    )
    kind = answer.headers.get("content-type", "").split(";")[0].strip().lower()
    if answer.status != 200 or not re.fullmatch(r"application/([a-z0-9.+-]+\+)?json", kind):
        _refuse("The client's address does not answer with its metadata as JSON.")
    document = read_metadata(answer.body)
    if document.get("client_id") != client_id:
        _refuse("The client's metadata is not about this address.")
    if document.get("token_endpoint_auth_method", "none") != "none" or "client_secret" in document:
        _refuse("A client that is known by its address has no secret.")
    return document, _freshness(answer.headers.get("cache-control", ""))


def _check_id(client_id: str) -> None:
    parts = urlsplit(client_id)
    dotted = {".", ".."} & set(parts.path.split("/"))
    plain = len(client_id) <= MAX_ID and not redirect_uri_problem(client_id)
    if not plain or dotted or parts.path in {"", "/"}:
        _refuse("The client's address is not one that a client may have.")


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
    """What we keep of it. Raises Invalid."""
    grants = metadata.get("grant_types", ["authorization_code"])
    if not isinstance(grants, list) or "authorization_code" not in grants:
        _refuse("grant_types names authorization_code.")
    answers = metadata.get("response_types", ["code"])
    if not isinstance(answers, list) or "code" not in answers:
        _refuse("response_types names code.")
    return {
        "name": _name(metadata.get("client_name")),
        "redirect_uris": " ".join(_redirects(metadata.get("redirect_uris"))),
        "authorization_grant_type": Application.GRANT_AUTHORIZATION_CODE,
        "hash_client_secret": False,
    }


def _redirects(given: object) -> list[str]:
    if not isinstance(given, list) or not 0 < len(given) <= MAX_REDIRECTS:
        _refuse(f"redirect_uris is a list of 1 to {MAX_REDIRECTS}.", "invalid_redirect_uri")
    for uri in given:
        schemes = settings.OAUTH_APP_SCHEMES
        problem = (
            redirect_uri_problem(uri, app_schemes=schemes) if isinstance(uri, str) else "No text."
        )
        if problem:
            _refuse(problem, "invalid_redirect_uri")
    return list(given)


def _name(given: object) -> str:
    return clean_client_name(given if isinstance(given, str) else "", most=MAX_NAME) or NAMELESS


def _refuse(message: str, code: str = "invalid_client_metadata") -> NoReturn:
    raise Invalid(message, code=code)
