"""`manage.py verify [id …]`: check every invariant of the stored data."""

import json
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError

from core.sql.database_address import database_address
from evolution.jobs.verification import Problem, verify_database
from playbooks.models import Playbook


class Command(BaseCommand):
    help = (
        "Check every invariant of the stored data: no outcome lost or applied twice, consecutive "
        "versions that replay from their deltas, one active job, counters, pointers, metered "
        "calls. Prints violations; the exit code is 1 if there are any. Safe to run "
        "beside a live platform."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("playbooks", nargs="*", type=UUID, help="ids; none means all")
        parser.add_argument(
            "--json", action="store_true", help="one JSON object a line, the last one sums up"
        )

    def handle(self, *args: Any, playbooks: list[UUID], **options: Any) -> None:
        self.stderr.write(f"Verifying {database_address()}.")
        missing = [pk for pk in playbooks if not Playbook.objects.filter(pk=pk).exists()]
        if missing:
            raise CommandError(f"There is no playbook {', '.join(map(str, missing))}.")
        checked = problems = 0
        for found in verify_database(playbooks):
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
