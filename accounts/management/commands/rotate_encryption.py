"""`manage.py rotate_encryption`: re-encrypt all secrets with the first of FIELD_ENCRYPTION_KEYS."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.services.encryption_rotation import reencrypt_all
from core.security.encryption import DecryptionError


class Command(BaseCommand):
    help = "Encrypt stored secrets with the first of FIELD_ENCRYPTION_KEYS; the others can go then."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            done = reencrypt_all()
        except DecryptionError as error:
            raise CommandError(
                f"{error} Add the old key to the list again, after the new one."
            ) from None
        self.stdout.write(
            f"Encrypted {done} rows with the first key; the others can be removed now."
        )
