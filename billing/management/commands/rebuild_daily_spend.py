"""`manage.py rebuild_daily_spend`: recompute daily totals, after a restore for example."""

from typing import Any

from django.core.management.base import BaseCommand

from billing.usage.daily_spend import rebuild_daily_spend


class Command(BaseCommand):
    help = (
        "Recompute the daily cost totals from the usage records. "
        "Safe on a running platform; model calls wait for it."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{rebuild_daily_spend()} wrong totals were corrected.")
