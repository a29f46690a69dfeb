"""Re-encryption of every stored secret with the first of FIELD_ENCRYPTION_KEYS.

Each row is done in its own transaction: a killed command has done some of the rows, all of them
stay readable with the keys in the list, and the next run does the rest.
"""

from collections.abc import Callable
from typing import Any

from allauth.mfa.models import Authenticator
from django.db import transaction

from accounts.models import LlmKey
from core.security.encryption import DecryptionError, reencrypt


def reencrypt_all(*, after_each: Callable[[], None] = lambda: None) -> int:
    """Re-encrypt every secret with the first key; return how many rows.

    Raises DecryptionError, which names the row.
    """
    done = 0
    for model, renew in ((LlmKey, _reencrypt_llm_key), (Authenticator, _reencrypt_authenticator)):
        for pk in list(model.objects.order_by("pk").values_list("pk", flat=True)):
            done += _reencrypt_row(model, pk, renew)
            after_each()
    return done


def _reencrypt_row(model: Any, pk: Any, renew: Callable[[Any], bool]) -> int:
    with transaction.atomic():
        # Locked, so that a key that its user sets meanwhile is not overwritten with the old one.
        row = model.objects.select_for_update().filter(pk=pk).first()
        if row is None:
            return 0
        try:
            return int(renew(row))
        except DecryptionError as error:
            raise DecryptionError(f"{model._meta.label} {pk}: {error}") from None


def _reencrypt_llm_key(key: LlmKey) -> bool:
    key.encrypted_key = reencrypt(key.encrypted_key)
    key.save(update_fields=["encrypted_key"])
    return True


def _reencrypt_authenticator(factor: Authenticator) -> bool:
    """Apps have a `secret`, recovery codes a `seed`; passkeys have no secret."""
    names = [name for name in ("secret", "seed") if name in factor.data]
    for name in names:
        factor.data[name] = reencrypt(factor.data[name])
    if names:
        factor.save(update_fields=["data"])
    return bool(names)
