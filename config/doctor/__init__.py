"""`manage.py doctor`: looks at everything the platform stands on, and says what to do.

A look never raises and never tells a secret: what it found is words of ours, figures, and names.
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
    """What one look found."""

    name: str
    finding: Finding


def run_checks(options: Options) -> Iterator[CheckResult]:
    """Every look in order; what stands on something that failed is left out, and says so."""
    down: set[str] = set()
    for name, look in CHECKS.items():
        if options.only and name not in options.only:
            continue
        if "database" in down and name in DATABASE_CHECKS:
            finding = skipped("it needs the database")
        elif "migrations" in down and name in TABLE_CHECKS:
            finding = skipped("it needs the tables")
        else:
            finding = _run_check(look, options)
        if finding.status == "failed":
            down.add(name)
        yield CheckResult(name, finding)


def _run_check(look: Check, options: Options) -> Finding:
    try:
        return look(options)
    except DatabaseError as error:
        return failed(f"the database said {type(error).__name__}", "Read the server's log.")


def as_dict(named: CheckResult) -> dict[str, str]:
    return {"name": named.name} | asdict(named.finding)
