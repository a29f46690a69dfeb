"""`manage.py backfill_prices`: set the cost of earlier calls of unknown cost."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from billing.pricing.backfill import backfill_prices


class Command(BaseCommand):
    help = (
        "Price model calls whose cost is unknown. Uses your Price overrides (admin) and the public "
        "list, both as of the time of the call. Shows what would change; --apply saves it. "
        "Safe to stop and rerun at any time."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--apply", action="store_true", help="save the changes (default: only show them)"
        )

    def handle(self, **options: Any) -> None:
        done = backfill_prices(apply=options["apply"])
        verb = "repriced" if options["apply"] else "would be repriced"
        priced = done.by_source.total()
        self.stdout.write(f"{priced} of {priced + done.unknown.total()} calls {verb}.")
        self.stdout.write(f"Known cost changes by ${done.cost_usd:.6f}.")
        for source, calls in done.by_source.most_common():
            self.stdout.write(f"  {calls} by {source}")
        for model, calls in done.unknown.most_common():
            self.stdout.write(f"Still unknown: {calls} of {model}")
        if priced and not options["apply"]:
            self.stdout.write("Nothing was changed. Run again with --apply.")
