"""Seal everything under the first of FIELD_ENCRYPTION_KEYS, so that the others can be dropped."""

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
                f"{error} Put the old key back into the list, behind the new."
            ) from None
        self.stdout.write(f"Sealed {done} rows under the first key; the others can be dropped now.")
