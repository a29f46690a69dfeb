"""`manage.py backfill_prices`: set the cost of earlier calls of unknown cost."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand

from billing.pricing.backfill import backfill_prices


def day_start(text: str) -> datetime:
    """Midnight UTC of a day."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a date such as 2026-01-31") from None


class Command(BaseCommand):
    help = (
        "Price model calls whose cost is unknown. Uses your Price overrides (admin) and the public "
        "list, both as of the time of the call. Shows what would change; --apply saves it. "
        "Safe to stop and rerun at any time."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--apply", action="store_true", help="save the changes (default: only show them)")
        add("--rewrite", action="store_true", help="recompute known costs too")
        add("--since", type=day_start, help="only calls from this day on (UTC)")
        add("--until", type=day_start, help="only calls before this day (UTC)")
        add("--model", default="", help="only calls to this model")

    def handle(self, **options: Any) -> None:
        names = ("apply", "rewrite", "since", "until", "model")
        done = backfill_prices(**{name: options[name] for name in names})
        verb = "repriced" if options["apply"] else "would be repriced"
        self.stdout.write(f"{done.priced} of {done.examined} calls {verb}.")
        self.stdout.write(f"Known cost changes by {done.change_usd:.6f} US$.")
        for source, calls in done.by_source.most_common():
            self.stdout.write(f"  {calls} by {source}")
        for model, calls in done.unknown.most_common():
            if calls:
                self.stdout.write(f"Still unknown: {calls} of {model}")
        if done.priced and not options["apply"]:
            self.stdout.write("Nothing was changed. Run again with --apply.")
