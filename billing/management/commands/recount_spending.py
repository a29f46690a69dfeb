"""`manage.py recount_spending`: after the ledger was changed behind the database's back."""

from typing import Any

from django.core.management.base import BaseCommand

from billing.spending import recount_spending


class Command(BaseCommand):
    help = (
        "Make each day's sum, which budgets and limits on cost are held against, what the ledger "
        "says. Beside a live platform; calls of models wait for it."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{recount_spending()} sums were wrong and are right now.")
