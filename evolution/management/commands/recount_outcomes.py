"""`manage.py recount_outcomes`: for upgrades during which the old version kept serving."""

from typing import Any

from django.core.management.base import BaseCommand

from evolution.outcomes.metrics import recount_outcomes


class Command(BaseCommand):
    help = "Recompute each playbook's outcome count. It may run beside a live platform."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"Corrected {recount_outcomes()} outcome counts.")
