"""Users' own LLM keys: stored encrypted, used by the worker, never shown again."""

from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db import transaction

from accounts.models import LlmKey, User
from core.audit import record
from core.errors import Invalid, NotFound
from core.http.deadlines import Resolve
from core.http.safe_http import HostUnreachable, fetch, resolve_public_addresses
from core.ratelimit.limits import consume_rate_limit
from core.security.encryption import decrypt, encrypt

DEFAULT_URL = "https://api.openai.com/v1"
MAX_ANSWER, SECONDS = 512 * 1024, 10


@dataclass(frozen=True)
class LlmCredential:
    """A user's LLM key and its endpoint. Connect only to the addresses from `resolve(host, port)`.

    An empty `base_url` means the operator's endpoint: `resolve` is None, any address is allowed.
    """

    api_key: str = field(repr=False)
    base_url: str
    resolve: Resolve | None


def set_llm_key(*, user: User, api_key: str, base_url: str = "") -> LlmKey:
    """Use this key and endpoint for evolutions of the user's playbooks.

    Raises Invalid: not a key, no https, a host that is not on the public internet.
    """
    api_key = api_key.strip()
    if not 8 <= len(api_key) <= 500 or not api_key.isascii() or not api_key.isprintable():
        raise Invalid.field("api_key", "Enter the key exactly as the provider shows it.")
    base_url = clean_base_url(base_url)
    values = {"encrypted_key": encrypt(api_key), "last_four": api_key[-4:], "base_url": base_url}
    with transaction.atomic():
        key, _ = LlmKey.objects.update_or_create(user=user, defaults=values)
        record(action="set_llm_key", by=user, subject=key, host=urlsplit(base_url).hostname or "")
    return key


def remove_llm_key(*, user: User) -> None:
    """Delete the user's key; evolutions use the platform's again. Raises NotFound."""
    with transaction.atomic():
        key = _require_key(user)
        record(action="remove_llm_key", by=user, subject=key)
        key.delete()


def try_llm_key(*, user: User) -> None:
    """Test the key by listing the models of its endpoint.

    Raises NotFound, Invalid, RateLimited: each test is a request to a URL that the user chose.
    """
    key = _require_key(user)
    consume_rate_limit("try_llm_key", str(user.pk))
    url = (key.base_url or settings.OPENAI_BASE_URL or DEFAULT_URL).rstrip("/") + "/models"
    headers = {"Authorization": f"Bearer {decrypt(key.encrypted_key)}"}
    found = fetch(
        url,
        max_bytes=MAX_ANSWER,
        seconds=SECONDS,
        private_hosts=settings.PRIVATE_HOSTS,
        headers=headers,
    )
    if found.status in {401, 403}:
        raise Invalid("The endpoint rejected this key.", code="llm_key_refused")
    if found.status != 200:
        raise Invalid(f"The endpoint answered {found.status}. Check the base URL.")


def llm_credential_for(*, user_id: UUID) -> LlmCredential | None:
    """The user's own key, or None to use the platform's."""
    key = LlmKey.objects.filter(user_id=user_id).first()
    if key is None:
        return None
    resolve = partial(resolve_public_addresses, private_hosts=tuple(settings.PRIVATE_HOSTS))
    return LlmCredential(
        decrypt(key.encrypted_key), key.base_url, resolve if key.base_url else None
    )


def clean_base_url(base_url: str) -> str:
    """A valid https URL on the public internet, without credentials. Raises Invalid."""
    base_url = base_url.strip()
    if not base_url:
        return ""
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port or 443
    except ValueError:
        raise _invalid_url() from None
    odd = parts.username is not None or parts.query or parts.fragment or "\\" in base_url
    if parts.scheme != "https" or not host or odd or not base_url.isascii():
        raise _invalid_url()
    try:
        resolve_public_addresses(host, port, private_hosts=settings.PRIVATE_HOSTS)
    except HostUnreachable as error:
        raise Invalid.field("base_url", error.message) from None
    return base_url.rstrip("/")


def _require_key(user: User) -> LlmKey:
    key = LlmKey.objects.filter(user=user).first()
    if key is None:
        raise NotFound("LLM key", "Set one first.", given="account")
    return key


def _invalid_url() -> Invalid:
    return Invalid.field("base_url", "Enter a URL such as https://api.example.com/v1.")
