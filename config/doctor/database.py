"""Checks of the database, encryption keys, cache, workers and queue."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import psycopg
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from redis.exceptions import RedisError

from accounts.models import LlmKey
from config.doctor.connection_errors import describe_connection_error
from config.doctor.findings import Finding, Options, failed, ok, warning
from config.observability.readiness import check_migrations as migrations
from config.observability.readiness import check_worker as worker
from core.clock import database_now
from core.security.encryption import DecryptionError, decrypt
from evolution.models import EvolutionJob

OLDEST_POSTGRES, OLDEST_SQLITE = 140_000, (3, 35)
OUR_APPS = {"core", "accounts", "billing", "playbooks", "evolution", "mcp_bridge"}
TIMEOUTS = ("idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout")


def check_database(options: Options) -> Finding:
    return _postgres() if connection.vendor == "postgresql" else _sqlite()


def _postgres() -> Finding:
    known: dict[str, Any] = connection.get_connection_params()
    known = {name: value for name, value in known.items() if name not in {"pool"}}
    try:
        # Not through the pool, which takes ten seconds to report that it cannot connect.
        with psycopg.connect(**known | {"connect_timeout": 5}) as server:
            return _judge_postgres(server)
    except psycopg.OperationalError as error:
        return failed(
            f"PostgreSQL at {known.get('host')}:{known.get('port') or 5432}: {_reason(error)}",
            "Is it running? Check host, port, name, user and password in DATABASE_URL.",
        )


def _reason(error: psycopg.Error) -> str:
    """The reason in fixed phrases: libpq's message may quote the connection string."""
    text = str(error).lower()
    for sign, words in {
        "password": "it rejects the password",
        "refused": "connection refused",
        "does not exist": "no such database or user",
        "resolve": "unknown host",
        "name or service": "unknown host",
        "timeout": "timed out after 5 s",
        "too many": "no connections left",
    }.items():
        if sign in text:
            return words
    return "unreachable"


def _judge_postgres(server: "psycopg.Connection[Any]") -> Finding:
    number = server.info.server_version
    shown = f"PostgreSQL {number // 10_000}.{number % 10_000}"
    if number < OLDEST_POSTGRES:
        return failed(shown, "Upgrade the server: 14 is the oldest supported version.")
    if server.execute("SELECT pg_is_in_recovery()").fetchone() == (True,):
        return failed(f"{shown}, a standby", "Point DATABASE_URL at the primary.")
    if any(server.execute(f"SHOW {name}").fetchone() == ("0",) for name in TIMEOUTS):
        return warning(
            f"{shown}, without our time-outs",
            "A pooler drops them. Set them for the user: ALTER ROLE … SET statement_timeout = "
            "'15s'; the same for lock_timeout and idle_in_transaction_session_timeout ('5s').",
        )
    return ok(shown)


def _sqlite() -> Finding:
    with connection.cursor() as cursor:
        version, mode, wait = (
            cursor.execute(query).fetchone()[0]
            for query in ("SELECT sqlite_version()", "PRAGMA journal_mode", "PRAGMA busy_timeout")
        )
    shown = f"SQLite {version}, {mode}, lock time-out {wait // 1000} s"
    if tuple(map(int, version.split(".")[:2])) < OLDEST_SQLITE:
        return failed(shown, "Use a Python built with SQLite 3.35 or newer.")
    if mode != "wal":
        return warning(
            shown, "Put ACE_DATA_DIR on a local disk: network file systems do not support WAL."
        )
    return ok(shown)


def check_migrations(options: Options) -> Finding:
    status, detail = migrations()
    if status != "ok":
        return failed(detail, "Run manage.py migrate.")
    newer = _unknown_migrations()
    if newer:
        advice = "Fine during an upgrade; else run the newer version (docs/UPGRADING.md)."
        return warning(f"applied, and {newer} unknown to this version", advice)
    return ok("applied")


def _unknown_migrations() -> int:
    """The number of our migrations that the database has and this code does not."""
    loader = MigrationLoader(connection)
    applied, known = set(loader.applied_migrations or ()), set(loader.disk_migrations or ())
    return sum(label in OUR_APPS for label, _ in applied - known)


def host_now() -> datetime:
    return datetime.now(UTC)


def check_clock(options: Options, now: Callable[[], datetime] | None = None) -> Finding:
    """How far this host's clock is from the database's, which leases and waits use."""
    read = now or host_now
    before = read()
    there = database_now()
    skew = (there - before - (read() - before) / 2).total_seconds()
    shown = f"{skew:+.1f} s from this host to the database"
    if abs(skew) > options.max_skew_seconds:
        return failed(
            shown, "Synchronize both clocks with NTP: tokens, codes and servings expire by them."
        )
    return ok(shown)


def check_encryption_keys(options: Options) -> Finding:
    """The keys decrypt the newest row of each kind."""
    key = LlmKey.objects.order_by("-created_at").values_list("encrypted_key", flat=True).first()
    factor = Authenticator.objects.filter(type="totp").order_by("-created_at").first()
    found = [key] if key else []
    found += [factor.data["secret"]] if factor else []
    try:
        for value in found:
            decrypt(value)
    except DecryptionError:
        return failed(
            "FIELD_ENCRYPTION_KEYS does not decrypt stored secrets",
            "Add the key that encrypted them after the first one; see docs/OPERATIONS.md.",
        )
    return ok("decrypts stored secrets" if found else "no stored secrets")


def check_cache(options: Options) -> Finding:
    """The rate-limit counters work."""
    where = "Redis" if settings.REDIS_URL else "the database"
    try:
        cache.add("doctor", 0, timeout=10)
        cache.incr("doctor")
    except (OSError, ValueError, RedisError) as error:
        return failed(
            f"{where}: {describe_connection_error(error)}", "Check REDIS_URL. Is Redis running?"
        )
    return ok(f"in {where}")


def check_worker(options: Options) -> Finding:
    status, detail = worker()
    advice = "Start manage.py run_worker, or read its log: nothing evolves without a worker."
    return ok(detail) if status == "ok" else failed(detail, advice)


def check_queue(options: Options) -> Finding:
    now = database_now()
    active = EvolutionJob.objects.active()
    due, stuck = active.due(now).count(), active.in_state("stuck", now).count()
    shown = f"{due} due, {stuck} stuck"
    if stuck:
        return failed(shown, "See admin → Evolutions → stuck; retry or cancel them there.")
    return ok(shown)
