"""`manage.py doctor`: check the installation and say how to fix each problem."""

import json
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from config.doctor import Finding, external_services, failed, own_checks

CHECKS: dict[str, Callable[[], Finding]] = {
    "settings": own_checks.check_settings,
    "disk": own_checks.check_disk,
    "model": partial(external_services.check_llm_endpoint, spend=False),
    "mail": external_services.check_mail,
    "database": own_checks.check_database,
    "migrations": own_checks.check_migrations,
    "clock": own_checks.check_clock,
    "encryption": own_checks.check_encryption_keys,
    "cache": own_checks.check_cache,
    "worker": own_checks.check_worker,
    "queue": own_checks.check_queue,
    "stripe": external_services.check_stripe,
}
NEEDED = ("database", "migrations")
"""Once one of these failed, the checks after it are skipped."""
MARKS = {"ok": "ok", "warning": "!!", "failed": "XX", "skipped": "--"}


class Command(BaseCommand):
    help = (
        "Check the installation and suggest a fix for each problem. Covers settings, disk, the "
        "model endpoint, mail, database, migrations, clock, keys, counters, worker, queue and "
        "Stripe. Exit code 1 when something failed. Prints no secret, changes nothing, and spends "
        "no token unless asked."
    )
    requires_system_checks: list[str] = []  # they may need what is broken

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("only", nargs="*", metavar="name", help=f"any of {', '.join(CHECKS)}")
        parser.add_argument("--json", action="store_true", help="one JSON document")
        parser.add_argument(
            "--llm", action="store_true", help="make one call per role and check the replies"
        )
        parser.add_argument("--strict", action="store_true", help="treat warnings as failures")

    def handle(self, *args: Any, only: list[str], **options: Any) -> None:
        unknown = set(only) - set(CHECKS)
        if unknown:
            raise CommandError(f"Unknown check: {', '.join(sorted(unknown))}.")
        checks = CHECKS | {
            "model": partial(external_services.check_llm_endpoint, spend=options["llm"])
        }
        found: dict[str, Finding] = {}
        missing = ""
        for name, check in checks.items():
            if only and name not in only:
                continue
            found[name] = Finding("skipped", f"needs {missing}") if missing else run_check(check)
            if found[name].status == "failed" and name in NEEDED:
                missing = name
            if not options["json"]:
                self._print(name, found[name])
        failing = {"failed", "warning"} if options["strict"] else {"failed"}
        count = sum(finding.status in failing for finding in found.values())
        if options["json"]:
            rows = [{"name": name} | asdict(finding) for name, finding in found.items()]
            self.stdout.write(json.dumps({"ok": not count, "checks": rows}, indent=2))
        if count:
            self.stdout.flush()  # so that the count comes last in a log
            raise CommandError(f"{count} of {len(found)} checks failed.", returncode=1)

    def _print(self, name: str, finding: Finding) -> None:
        self.stdout.write(f"{MARKS[finding.status]} {name:<10} {finding.detail}")
        if finding.advice:
            self.stdout.write(f"   {'':<10} {finding.advice}")


def run_check(check: Callable[[], Finding]) -> Finding:
    try:
        return check()
    except DatabaseError as error:
        return failed(f"database error {type(error).__name__}", "Read the server's log.")
