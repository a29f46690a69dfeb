"""`manage.py doctor`: check the installation and say how to fix each problem."""

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
        parser.add_argument("only", nargs="*", metavar="name", help=f"any of {', '.join(CHECKS)}")
        parser.add_argument("--json", action="store_true", help="one JSON document")
        parser.add_argument(
            "--llm", action="store_true", help="make one call of each role and say what fits"
        )
        parser.add_argument("--spend", action="store_true", help="make a short call to each model")
        parser.add_argument("--min-free-mb", type=int, default=Options.min_free_mb)
        parser.add_argument("--max-skew-seconds", type=float, default=Options.max_skew_seconds)
        parser.add_argument("--strict", action="store_true", help="treat warnings as failures")

    def handle(self, *args: Any, **options: Any) -> None:
        unknown = set(options["only"]) - set(CHECKS)
        if unknown:
            raise CommandError(f"Unknown check: {', '.join(sorted(unknown))}.")
        asked = Options(
            only=tuple(options["only"]),
            min_free_mb=options["min_free_mb"],
            max_skew_seconds=options["max_skew_seconds"],
            spend=options["spend"],
            llm=options["llm"],
        )
        results = []
        for result in run_checks(asked):
            results.append(result)
            if not options["json"]:
                self._print(result)
        failing = {"failed", "warning"} if options["strict"] else {"failed"}
        count = sum(result.finding.status in failing for result in results)
        if options["json"]:
            body = {"ok": not count, "checks": [as_dict(result) for result in results]}
            self.stdout.write(json.dumps(body, indent=2))
        if count:
            self.stdout.flush()  # so that the count comes last in a log
            raise CommandError(f"{count} of {len(results)} checks failed.", returncode=1)

    def _print(self, result: CheckResult) -> None:
        finding = result.finding
        self.stdout.write(f"{MARKS[finding.status]} {result.name:<10} {finding.detail}")
        if finding.advice:
            self.stdout.write(f"   {'':<10} {finding.advice}")
