"""`manage.py bootstrap`: create or update the first account."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.management.bootstrap import ensure_first_login
from core.errors import AceError


class Command(BaseCommand):
    help = "Create or update the first account from ACE_BOOTSTRAP_*, or generate one."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            made = ensure_first_login()
        except AceError as error:
            raise CommandError(error.message) from None
        if made.warning:
            self.stderr.write(made.warning)
        if made.password or made.api_key:
            self.stdout.write(f"First login, shown once: {made.email}")
        if made.password:
            self.stdout.write(f"  password  {made.password}")
        if made.api_key:
            self.stdout.write(f"  API key   {made.api_key}  (for an agent: scope report)")
