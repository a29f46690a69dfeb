"""Whose key pays for an evolution: the owner's own, or the operator's."""

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.utils.crypto import salted_hmac


@dataclass(frozen=True)
class Credential:
    """An endpoint and a key for it; `own`: the playbook's owner brought it."""

    api_key: str
    base_url: str
    own: bool = False

    def __repr__(self) -> str:
        return f"Credential({self.base_url!r}, own={self.own})"

    @property
    def line(self) -> str:
        """A digest of both: what the ledger and ProviderLine know it by."""
        return _digest(self.base_url, self.api_key)

    def line_of_model(self, model: str) -> str:
        """A digest for one model of this key."""
        return _digest(self.base_url, self.api_key, model)


def _digest(*parts: str) -> str:
    return salted_hmac("evolution.line", "\n".join(parts), algorithm="sha256").hexdigest()


def credential_for(owner_id: UUID) -> Credential:
    """The key with which evolutions of this owner's playbooks call a model."""
    return Credential(settings.OPENAI_API_KEY, settings.OPENAI_BASE_URL)
