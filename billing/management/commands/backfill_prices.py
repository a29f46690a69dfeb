"""`manage.py backfill_prices`: give calls of unknown cost the price that is known now."""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand

from billing.pricing.backfill import BATCH_SIZE, Backfill, backfill_prices


def day_start(text: str) -> datetime:
    """The first moment of a day, UTC."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a day such as 2026-01-31") from None


def batch_size(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 5000:
        raise ArgumentTypeError("a part has 1 to 5000 calls")
    return int(text)


class Command(BaseCommand):
    help = (
        "Price model calls whose cost is unknown. Uses your Price overrides (admin) and the public "
        "list, both as of the time of the call. Shows what would change; --apply changes it. It "
        "can be stopped and run again at any time."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        add = parser.add_argument
        add("--apply", action="store_true", help="write it; without this nothing is changed")
        add("--rewrite", action="store_true", help="reckon known costs again too")
        add("--since", type=day_start, help="only calls from this day on (UTC)")
        add("--until", type=day_start, help="only calls before this day (UTC)")
        add("--model", default="", help="only calls of this model")
        add(
            "--part",
            type=batch_size,
            default=BATCH_SIZE,
            help=f"calls of one transaction ({BATCH_SIZE})",
        )

    def handle(self, **options: Any) -> None:
        chosen = {name: options[name] for name in ("rewrite", "since", "until", "model", "part")}
        done = backfill_prices(dry_run=not options["apply"], say=self.say, **chosen)
        verb = "got another price" if options["apply"] else "would get another price"
        self.stdout.write(f"{done.priced} of {done.examined} calls {verb}.")
        self.stdout.write(f"Known cost changes by {done.change_usd:.6f} US$.")
        for source, calls in done.by_source.most_common():
            self.stdout.write(f"  {calls} by {source}")
        for model, calls in done.unknown.most_common():
            if calls:
                self.stdout.write(f"Still unknown: {calls} of {model}")
        if done.priced and not options["apply"]:
            self.stdout.write("Nothing was changed. Run it with --apply.")

    def say(self, done: Backfill) -> None:
        self.stderr.write(f"{done.examined} looked at, {done.priced} priced")
