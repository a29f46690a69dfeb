"""`manage.py rebuild_daily_spend`: after the ledger was changed behind the database's back."""

from typing import Any

from django.core.management.base import BaseCommand

from billing.usage.daily_spend import rebuild_daily_spend


class Command(BaseCommand):
    help = (
        "Recompute each day's spending from the ledger. Budgets and cost limits compare with it. "
        "May run beside a live platform; model calls wait for it."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{rebuild_daily_spend()} sums were wrong and are right now.")
