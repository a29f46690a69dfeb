"""`manage.py clear_oauth`: what the worker's sweep does every hour, now."""

from typing import Any

from django.core.management.base import BaseCommand

from accounts.oauth.cleanup import clear_oauth


class Command(BaseCommand):
    help = "Delete expired OAuth codes and tokens, idle connections and unused clients."

    def handle(self, *args: Any, **options: Any) -> None:
        gone = clear_oauth()
        self.stdout.write(f"{gone['connections']} connections and {gone['clients']} clients gone.")
