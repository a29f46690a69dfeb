"""The checks of `manage.py doctor`.

A check never raises and never prints a secret: results consist of fixed phrases, numbers and names.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from django.db import DatabaseError

from config.doctor import database, external_services, machine, settings
from config.doctor.findings import Finding, Options, failed, skipped

__all__ = ["CHECKS", "CheckResult", "Finding", "Options", "as_dict", "run_checks"]

Check = Callable[[Options], Finding]
CHECKS: dict[str, Check] = {
    "python": machine.check_python,
    "packages": machine.check_packages,
    "disk": machine.check_disk,
    "settings": settings.check_settings,
    "database": database.check_database,
    "migrations": database.check_migrations,
    "clock": database.check_clock,
    "encryption": database.check_encryption_keys,
    "cache": database.check_cache,
    "worker": database.check_worker,
    "queue": database.check_queue,
    "model": external_services.check_llm_endpoint,
    "mail": external_services.check_mail,
    "stripe": external_services.check_stripe,
}
DATABASE_CHECKS = {"migrations", "clock", "encryption", "cache", "worker", "queue", "stripe"}
TABLE_CHECKS = DATABASE_CHECKS - {"migrations", "clock"}


@dataclass(frozen=True)
class CheckResult:
    """The finding of one check."""

    name: str
    finding: Finding


def run_checks(options: Options) -> Iterator[CheckResult]:
    """Run the checks in order; those that depend on a failed one are skipped."""
    down: set[str] = set()
    for name, check in CHECKS.items():
        if options.only and name not in options.only:
            continue
        if "database" in down and name in DATABASE_CHECKS:
            finding = skipped("needs the database")
        elif "migrations" in down and name in TABLE_CHECKS:
            finding = skipped("needs the tables")
        else:
            finding = _run_check(check, options)
        if finding.status == "failed":
            down.add(name)
        yield CheckResult(name, finding)


def _run_check(check: Check, options: Options) -> Finding:
    try:
        return check(options)
    except DatabaseError as error:
        return failed(f"database error {type(error).__name__}", "Read the server's log.")


def as_dict(result: CheckResult) -> dict[str, str]:
    return {"name": result.name} | asdict(result.finding)
