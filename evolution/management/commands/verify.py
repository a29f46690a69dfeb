"""`manage.py verify [id …]`: check every invariant of the stored data."""

import json
from argparse import ArgumentParser
from itertools import chain
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.sql.database_address import database_address
from evolution.jobs.verification import Problem, serving_ids_of_logs, verify_database
from playbooks.management.lookups import playbook_named


class Command(BaseCommand):
    help = (
        "Check every invariant of the stored data: no outcome lost or applied twice, consecutive "
        "versions that replay from their deltas and match their seals, trials, one active job, "
        "counters, pointers, metered calls. Prints violations; the exit code is 1 if there are "
        "any. Safe to run while the platform is live."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("playbooks", nargs="*", help="IDs or names (default: all)")
        parser.add_argument(
            "--serving-id",
            dest="serving_ids",
            action="append",
            default=[],
            help="from an agent's log; checks that its version still has the same seal",
        )
        parser.add_argument(
            "--json",
            action="store_true",
            help="one JSON object per line; the last one is the summary",
        )

    def handle(
        self, *args: Any, playbooks: list[str], serving_ids: list[str], **options: Any
    ) -> None:
        self.stderr.write(f"Verifying {database_address()}.")
        checked = problems = 0
        rows = verify_database([playbook_named(name).pk for name in playbooks])
        for found in chain(rows, serving_ids_of_logs(serving_ids)):
            if isinstance(found, Problem):
                problems += 1
                self._say(found, as_json=options["json"])
            else:
                checked += 1
        if options["json"]:
            self.stdout.write(json.dumps({"playbooks": checked, "problems": problems}))
        if problems:
            raise CommandError(f"{problems} problems in {checked} playbooks", returncode=1)
        if not options["json"]:
            self.stdout.write(f"{checked} playbooks verified")

    def _say(self, problem: Problem, *, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(problem.as_dict()))
            return
        ids = f" ({', '.join(problem.ids)})" if problem.ids else ""
        where = problem.playbook_id or "every playbook"
        self.stderr.write(f"{where}: {problem.code}: {problem.sentence}{ids}")
