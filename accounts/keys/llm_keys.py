"""A user's own key at a provider of models: kept sealed, used by the worker, never shown again."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.db import transaction

from accounts.models import LlmKey, User
from core.audit import record
from core.errors import Invalid, NotFound
from core.http.safe_http import HostUnreachable, fetch, resolve_public_addresses
from core.ratelimit.limits import consume_rate_limit
from core.security.encryption import decrypt, encrypt

DEFAULT_URL = "https://api.openai.com/v1"
MAX_ANSWER, SECONDS = 512 * 1024, 10
Resolve = Callable[[str, int], list[str]]


@dataclass(frozen=True)
class LlmCredential:
    """A user's own key and where it goes. Connect only to what `resolve(host, port)` answers.

    An empty `base_url` is the platform's own endpoint, which the operator chose: `resolve` is
    None then, and no address is refused.
    """

    api_key: str = field(repr=False)
    base_url: str
    resolve: Resolve | None


def set_llm_key(*, user: User, api_key: str, base_url: str = "") -> LlmKey:
    """Evolutions of the user's playbooks are paid with this key, at this endpoint.

    Raises Invalid: no key, no https, an address that is not on the public internet.
    """
    api_key = api_key.strip()
    if not 8 <= len(api_key) <= 500 or not api_key.isascii() or not api_key.isprintable():
        raise Invalid.field("api_key", "Send the key as the provider shows it.")
    base_url = clean_base_url(base_url)
    values = {"encrypted_key": encrypt(api_key), "last_four": api_key[-4:], "base_url": base_url}
    with transaction.atomic():
        key, _ = LlmKey.objects.update_or_create(user=user, defaults=values)
        record(action="set_llm_key", by=user, subject=key, host=urlsplit(base_url).hostname or "")
    return key


def remove_llm_key(*, user: User) -> None:
    """The platform's own key pays again; what was kept is gone. Raises NotFound."""
    with transaction.atomic():
        key = _own(user)
        record(action="remove_llm_key", by=user, subject=key)
        key.delete()


def try_llm_key(*, user: User) -> None:
    """The endpoint takes the key for a list of its models.

    Raises NotFound, Invalid, RateLimited: each try is a request of ours to an address of theirs.
    """
    key = _own(user)
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
        raise Invalid("The endpoint refuses this key.", code="llm_key_refused")
    if found.status != 200:
        raise Invalid(f"The endpoint answered {found.status}. Is its base URL right?")


def llm_credential_for(*, user_id: UUID) -> LlmCredential | None:
    """The user's own key, or None: then the platform's pays."""
    key = LlmKey.objects.filter(user_id=user_id).first()
    if key is None:
        return None
    resolve = partial(resolve_public_addresses, private_hosts=tuple(settings.PRIVATE_HOSTS))
    return LlmCredential(
        decrypt(key.encrypted_key), key.base_url, resolve if key.base_url else None
    )


def clean_base_url(base_url: str) -> str:
    """An https address on the public internet, without a secret in it. Raises Invalid."""
    base_url = base_url.strip()
    if not base_url:
        return ""
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port or 443
    except ValueError:
        raise _no_url() from None
    odd = parts.username is not None or parts.query or parts.fragment or "\\" in base_url
    if parts.scheme != "https" or not host or odd or not base_url.isascii():
        raise _no_url()
    try:
        resolve_public_addresses(host, port, private_hosts=settings.PRIVATE_HOSTS)
    except HostUnreachable as error:
        raise Invalid.field("base_url", error.message) from None
    return base_url.rstrip("/")


def _own(user: User) -> LlmKey:
    key = LlmKey.objects.filter(user=user).first()
    if key is None:
        raise NotFound("LLM key", "Set one first.")
    return key


def _no_url() -> Invalid:
    return Invalid.field("base_url", "Send an address such as https://api.example.com/v1.")
