"""`manage.py rebuild_playbook <playbook> [--dry-run]`: repair the rows from the deltas."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.errors import AceError
from playbooks.management.lookups import playbook_named
from playbooks.services.repair import rebuild_playbook


class Command(BaseCommand):
    help = (
        "Repair a playbook's rows from its deltas. Replays them from version 1 and corrects bullet "
        "rows, counters, the current version and the next number. Lists what it corrected. "
        "Refuses when the history itself is broken (see verify)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("playbook", help="its ID or name")
        parser.add_argument(
            "--dry-run", action="store_true", help="list corrections; write nothing"
        )

    def handle(self, *args: Any, dry_run: bool, **options: Any) -> None:
        try:
            playbook = playbook_named(options["playbook"])
            corrections = rebuild_playbook(playbook=playbook, dry_run=dry_run)
        except AceError as error:
            raise CommandError(error.message) from None
        for line in corrections:
            self.stdout.write(line)
        what = "would be corrected" if dry_run else "corrected"
        self.stdout.write(f"{len(corrections)} differences {what}")
