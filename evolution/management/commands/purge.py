"""`manage.py purge`: delete old texts and expired rows, as the worker does once an hour."""

from typing import Any

from django.core.management.base import BaseCommand

from evolution.outcomes.retention import purge


class Command(BaseCommand):
    help = "Delete old traces and expired rows; the worker does the same once an hour."

    def handle(self, *args: Any, **options: Any) -> None:
        done = purge()
        blanked = f"{done['traces']} traces, {done['transcripts']} transcripts"
        self.stdout.write(f"Blanked {blanked}, deleted {done['rows']} rows.")
