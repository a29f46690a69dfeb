"""The LLM credential of an account: the owner's own key, or the operator's."""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings
from django.utils.crypto import salted_hmac

from accounts.keys.llm_keys import llm_credential_for
from core.errors import AceError
from evolution.engine.llm import CredentialError

Resolve = Callable[[str, int], list[str]]


@dataclass(frozen=True)
class Credential:
    """An endpoint and an API key; `own`: the playbook owner's.

    `resolve` returns the addresses that may be connected to; None for the operator's host.
    """

    api_key: str = field(repr=False)
    base_url: str
    own: bool = False
    resolve: Resolve | None = field(default=None, repr=False, compare=False)

    @property
    def circuit_key(self) -> str:
        """A digest of address and key, for the ledger and ProviderCircuit."""
        return _digest(self.base_url, self.api_key)

    def circuit_key_of_model(self, model: str) -> str:
        """The same for one model of this key."""
        return _digest(self.base_url, self.api_key, model)


def _digest(*parts: str) -> str:
    return salted_hmac("evolution.circuit", "\n".join(parts), algorithm="sha256").hexdigest()


def credential_for(owner_id: UUID) -> Credential:
    """The credential for LLM calls on behalf of this owner."""
    own = llm_credential_for(user_id=owner_id)
    if own is not None:
        base_url = own.base_url or settings.OPENAI_BASE_URL
        resolve = _with_engine_errors(own.resolve) if own.resolve else None
        return Credential(own.api_key, base_url, own=True, resolve=resolve)
    return Credential(settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL)


def _with_engine_errors(resolve: Resolve) -> Resolve:
    """`resolve`, raising the engine's error when it refuses."""

    def ask(host: str, port: int) -> list[str]:
        try:
            return resolve(host, port)
        except AceError as error:
            raise CredentialError("not_found", error.message) from None

    return ask
