"""`manage.py recount_outcomes`: after an upgrade during which the old version went on serving."""

from typing import Any

from django.core.management.base import BaseCommand

from evolution.outcomes.metrics import recount_outcomes


class Command(BaseCommand):
    help = "Recompute each playbook's outcome count. It may run beside a live platform."

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{recount_outcomes()} tallies were wrong and are right now.")
