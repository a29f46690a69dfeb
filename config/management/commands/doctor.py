"""`manage.py doctor`: is everything as the platform needs it, and if not, what to do."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.doctor import CHECKS, CheckResult, as_dict, run_checks
from config.doctor.findings import Options

MARKS = {"ok": "ok", "warning": "!!", "failed": "XX", "skipped": "--"}


class Command(BaseCommand):
    help = (
        "Check the installation and say what to do about each problem. Covers Python, packages, "
        "disk, settings, database, migrations, clock, keys, counters, worker, queue, the model "
        "endpoint, mail and Stripe. Exit code 1 when something failed. Prints no secret, changes "
        "nothing, and spends no token unless asked."
    )
    requires_system_checks: list[str] = []  # they may need what is broken

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("only", nargs="*", metavar="name", help=f"of {', '.join(CHECKS)}")
        parser.add_argument("--json", action="store_true", help="one JSON document")
        parser.add_argument("--spend", action="store_true", help="one short call of each model")
        parser.add_argument("--min-free-mb", type=int, default=Options.min_free_mb)
        parser.add_argument("--max-skew-seconds", type=float, default=Options.max_skew_seconds)
        parser.add_argument("--strict", action="store_true", help="warnings fail as well")

    def handle(self, *args: Any, **options: Any) -> None:
        unknown = set(options["only"]) - set(CHECKS)
        if unknown:
            raise CommandError(f"There is no check {', '.join(sorted(unknown))}.")
        asked = Options(
            only=tuple(options["only"]),
            min_free_mb=options["min_free_mb"],
            max_skew_seconds=options["max_skew_seconds"],
            spend=options["spend"],
        )
        found = []
        for named in run_checks(asked):
            found.append(named)
            if not options["json"]:
                self._say(named)
        bad = {"failed", "warning"} if options["strict"] else {"failed"}
        count = sum(named.finding.status in bad for named in found)
        if options["json"]:
            body = {"ok": not count, "checks": [as_dict(named) for named in found]}
            self.stdout.write(json.dumps(body, indent=2))
        if count:
            self.stdout.flush()  # or a log has the count first
            raise CommandError(f"{count} of {len(found)} checks failed.", returncode=1)

    def _say(self, named: CheckResult) -> None:
        finding = named.finding
        self.stdout.write(f"{MARKS[finding.status]} {named.name:<10} {finding.detail}")
        if finding.advice:
            self.stdout.write(f"   {'':<10} {finding.advice}")
