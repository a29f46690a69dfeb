"""The checks behind /readyz: database, migrations, worker heartbeat."""

import time
from collections.abc import Callable
from datetime import timedelta

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Max

from core.clock import database_now
from core.sql.storage_errors import fault_name, is_disk_full
from evolution.models import WorkerHeartbeat

WORKER_SILENT_AFTER = timedelta(seconds=60)
"""A worker records one every 10 s, and is restarted when it is silent for 45 s."""


def run_checks() -> dict[str, dict[str, object]]:
    """By name: `status` (ok, failed, or late: reported, but still ready), `took_ms`, `detail`."""
    found: dict[str, dict[str, object]] = {}
    for name, check in CHECKS.items():
        started = time.perf_counter()
        try:
            status, detail = check()
        except DatabaseError as error:
            status, detail = "failed", fault_name(error)
        took_ms = round((time.perf_counter() - started) * 1000, 1)
        found[name] = {"status": status, "took_ms": took_ms, "detail": detail}
    return found


def check_database() -> tuple[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    return ("failed", "disk_full") if is_disk_full() else ("ok", connection.vendor)


def check_migrations() -> tuple[str, str]:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return ("failed", f"{len(missing)} to apply") if missing else ("ok", "")


def check_worker() -> tuple[str, str]:
    last = WorkerHeartbeat.objects.aggregate(last=Max("last_seen_at"))["last"]
    if last is None:
        return "late", "no worker has been seen"
    age = database_now() - last
    return (
        "late" if age > WORKER_SILENT_AFTER else "ok",
        f"seen {max(0, int(age.total_seconds()))} s ago",
    )


CHECKS: dict[str, Callable[[], tuple[str, str]]] = {
    "database": check_database,
    "migrations": check_migrations,
    "worker": check_worker,
}
