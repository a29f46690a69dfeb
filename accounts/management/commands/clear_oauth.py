"""`manage.py clear_oauth`: the hourly cleanup of the worker, run now."""

from typing import Any

from django.core.management.base import BaseCommand

from accounts.oauth.cleanup import clear_oauth


class Command(BaseCommand):
    help = "Delete expired OAuth codes and tokens, idle connections and unused clients."

    def handle(self, *args: Any, **options: Any) -> None:
        deleted = clear_oauth()
        self.stdout.write(
            f"Deleted {deleted['connections']} connections and {deleted['clients']} clients."
        )
