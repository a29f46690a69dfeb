"""`manage.py rotate_encryption`: re-encrypt all secrets with the first of FIELD_ENCRYPTION_KEYS.

Each row is done in its own transaction: a killed command has done some of the rows, all of them
stay readable with the keys in the list, and the next run does the rest.
"""

from collections.abc import Iterator
from typing import Any

from allauth.mfa.models import Authenticator
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from accounts.models import LlmKey, WebhookEndpoint
from core.security.encryption import DecryptionError, reencrypt


class Command(BaseCommand):
    help = (
        "Re-encrypt stored secrets with the first of FIELD_ENCRYPTION_KEYS; "
        "the others can then be removed."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            done = sum(reencrypt_rows())
        except DecryptionError as error:
            raise CommandError(
                f"{error} Add the old key to the list again, after the new one."
            ) from None
        self.stdout.write(
            f"Encrypted {done} rows with the first key; the others can be removed now."
        )


def reencrypt_rows() -> Iterator[bool]:
    """For each row whether it had a secret. Raises DecryptionError, which names the row."""
    for model in (LlmKey, WebhookEndpoint, Authenticator):
        for pk in list(model.objects.order_by("pk").values_list("pk", flat=True)):
            # Locked, so that a key that its user sets meanwhile is not overwritten by the old one.
            with transaction.atomic():
                row = model.objects.select_for_update().filter(pk=pk).first()
                done = row is not None and _reencrypt(row)
            yield done


def _reencrypt(row: Any) -> bool:
    """False without a secret. Apps have a `secret`, recovery codes a `seed`; passkeys have none."""
    try:
        if isinstance(row, LlmKey | WebhookEndpoint):
            row.encrypted_key = reencrypt(row.encrypted_key)
            row.save(update_fields=["encrypted_key"])
            return True
        names = [name for name in ("secret", "seed") if name in row.data]
        row.data |= {name: reencrypt(row.data[name]) for name in names}
    except DecryptionError as error:
        raise DecryptionError(f"{row._meta.label} {row.pk}: {error}") from None
    if names:
        row.save(update_fields=["data"])
    return bool(names)
