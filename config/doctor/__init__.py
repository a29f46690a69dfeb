"""`manage.py doctor`: looks at everything the platform stands on, and says what to do.

A look never raises and never tells a secret: what it found is words of ours, figures, and names.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from django.db import DatabaseError

from config.doctor import contradictions, database, machine, outside
from config.doctor.findings import Finding, Options, failed, skipped

__all__ = ["LOOKS", "Finding", "Named", "Options", "as_dict", "examine"]

Look = Callable[[Options], Finding]
LOOKS: dict[str, Look] = {
    "python": machine.look_at_python,
    "packages": machine.look_at_packages,
    "disk": machine.look_at_disk,
    "settings": contradictions.look_at_settings,
    "database": database.look_at_database,
    "migrations": database.look_at_migrations,
    "clock": database.look_at_clock,
    "sealed": database.look_at_sealed,
    "counters": database.look_at_counters,
    "worker": database.look_at_worker,
    "queue": database.look_at_queue,
    "model": outside.look_at_model,
    "mail": outside.look_at_mail,
    "stripe": outside.look_at_stripe,
}
NEED_DATABASE = {"migrations", "clock", "sealed", "counters", "worker", "queue", "stripe"}
NEED_TABLES = NEED_DATABASE - {"migrations", "clock"}


@dataclass(frozen=True)
class Named:
    """What one look found."""

    name: str
    finding: Finding


def examine(options: Options) -> Iterator[Named]:
    """Every look in order; what stands on something that failed is left out, and says so."""
    down: set[str] = set()
    for name, look in LOOKS.items():
        if options.only and name not in options.only:
            continue
        if "database" in down and name in NEED_DATABASE:
            finding = skipped("it needs the database")
        elif "migrations" in down and name in NEED_TABLES:
            finding = skipped("it needs the tables")
        else:
            finding = _once(look, options)
        if finding.status == "failed":
            down.add(name)
        yield Named(name, finding)


def _once(look: Look, options: Options) -> Finding:
    try:
        return look(options)
    except DatabaseError as error:
        return failed(f"the database said {type(error).__name__}", "Read the server's log.")


def as_dict(named: Named) -> dict[str, str]:
    return {"name": named.name} | asdict(named.finding)
