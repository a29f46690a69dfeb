"""Checks of the settings, disk, database, encryption keys, cache, worker and queue."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.http.request import validate_host
from redis.exceptions import RedisError

from accounts.models import LlmKey
from config.doctor import Finding, describe_error, failed, ok, warning
from config.observability import readiness
from core.clock import database_now
from core.security.encryption import DecryptionError, decrypt
from evolution.models import EvolutionJob

MIN_FREE_MB, MAX_SKEW_SECONDS = 500, 5.0
OLDEST_POSTGRES = 140_000
OUR_APPS = {"core", "accounts", "billing", "playbooks", "evolution", "mcp_bridge"}
TIMEOUTS = ("idle_in_transaction_session_timeout", "lock_timeout", "statement_timeout")
REMOVED_SETTINGS = ("COST_CAP_", "MAX_STORED_")
"""A migration has copied them to the table of limits."""
LOCAL_NAMES = {"localhost", "127.0.0.1", "[::1]", "::1"}


def check_settings() -> Finding:
    """Settings that are valid alone and wrong together."""
    errors, warnings = list(_errors()), list(_warnings())
    if errors:
        return failed("; ".join(errors), "Fix each, then restart every process.")
    if warnings:
        return warning("; ".join(warnings), "Fix each, unless intended.")
    return ok("no contradictions")


def _errors() -> Iterator[str]:
    if settings.DEBUG and not settings.LOCAL:
        yield "DEBUG=true shows tracebacks to everyone"
    if settings.PUBLIC_URL:
        parts = urlsplit(settings.PUBLIC_URL)
        if not validate_host(parts.hostname or "", settings.ALLOWED_HOSTS):
            yield "the host of PUBLIC_URL is not in ALLOWED_HOSTS"
        if settings.HTTPS and parts.scheme == "http":
            yield "PUBLIC_URL begins with http:// although HTTPS is on"
    if settings.EMAIL_VERIFICATION == "mandatory" and "console" in settings.EMAIL_BACKEND:
        yield "EMAIL_VERIFICATION=mandatory without EMAIL_URL: nobody can confirm an address"
    if os.environ.get("FORWARDED_ALLOW_IPS", "").strip() == "*":
        yield "FORWARDED_ALLOW_IPS=* lets every client claim any address; list your proxies"


def _unread_settings() -> Iterator[str]:
    for name in sorted(os.environ):
        if name.startswith(REMOVED_SETTINGS):
            yield f"{name}: no longer read; set it in the admin under Limits"


def _warnings() -> Iterator[str]:
    if settings.ACE_ENGINE == "rules" and settings.OPENAI_API_KEY:
        yield "OPENAI_API_KEY is set, but ACE_ENGINE=rules never uses it"
    if settings.SECRET_KEY in {settings.JWT_SECRET_KEY, *settings.FIELD_ENCRYPTION_KEYS}:
        yield "SECRET_KEY is also JWT_SECRET_KEY or one of FIELD_ENCRYPTION_KEYS"
    yield from _unread_settings()
    if settings.LOCAL:
        return
    names = set(settings.ALLOWED_HOSTS)
    if "*" in names:
        yield "ALLOWED_HOSTS=* lets links in emails lead to any host that a request names"
    elif not names - LOCAL_NAMES:
        yield "ALLOWED_HOSTS has only this machine: no other can reach it"
    elif not settings.HTTPS:
        yield "HTTPS=false sends passwords and keys unencrypted"
    if settings.BILLING_ENABLED and not settings.STRIPE_LIVE_MODE and settings.HTTPS:
        yield "BILLING_ENABLED with a Stripe test key takes no money"


def check_disk() -> Finding:
    """Free space where the platform writes: data and temporary files."""
    folders = [tempfile.gettempdir()]
    folders += [str(settings.DATA_DIR)] if settings.LOCAL or settings.EMBEDDED else []
    free = {path: shutil.disk_usage(path).free // 2**20 for path in folders if Path(path).is_dir()}
    least = min(free, key=lambda path: free[path])
    if free[least] < MIN_FREE_MB:
        return failed(f"{free[least]} MB free at {least}", f"Free at least {MIN_FREE_MB} MB.")
    return ok(f"{free[least]} MB free")


def check_database() -> Finding:
    return _postgres() if connection.vendor == "postgresql" else _sqlite()


def _postgres() -> Finding:
    known: dict[str, Any] = connection.get_connection_params()
    known = {name: value for name, value in known.items() if name != "pool"}
    try:
        with psycopg.connect(**known | {"connect_timeout": 5}) as server:
            return _judge_postgres(server)
    except psycopg.OperationalError as error:
        # The parameters are given one by one, so the message quotes no password.
        return failed(
            " ".join(str(error).split()),
            "Is it running? Check host, port, name, user and password in DATABASE_URL.",
        )


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
        version, mode = (
            cursor.execute(query).fetchone()[0]
            for query in ("SELECT sqlite_version()", "PRAGMA journal_mode")
        )
    shown = f"SQLite {version}, {mode}"
    if mode != "wal":
        return warning(
            shown, "Put ACE_DATA_DIR on a local disk: network file systems do not support WAL."
        )
    return ok(shown)


def check_migrations() -> Finding:
    status, detail = readiness.check_migrations()
    if status != "ok":
        return failed(detail, "Run manage.py migrate.")
    loader = MigrationLoader(connection)
    known = set(loader.disk_migrations).union(
        *(m.replaces for m in loader.disk_migrations.values())
    )
    unknown = set(loader.applied_migrations or ()) - known
    newer = sum(label in OUR_APPS for label, _ in unknown)
    if newer:
        advice = "Fine during an upgrade; else run the newer version (docs/UPGRADING.md)."
        return warning(f"applied, and {newer} unknown to this version", advice)
    return ok("applied")


def host_now() -> datetime:
    return datetime.now(UTC)


def check_clock() -> Finding:
    """How far this host's clock is from the database's, which leases and waits use."""
    before = host_now()
    there = database_now()
    skew = (there - before - (host_now() - before) / 2).total_seconds()
    shown = f"{skew:+.1f} s from this host to the database"
    if abs(skew) > MAX_SKEW_SECONDS:
        return failed(
            shown, "Synchronize both clocks with NTP: tokens, codes and servings expire by them."
        )
    return ok(shown)


def check_encryption_keys() -> Finding:
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


def check_cache() -> Finding:
    """The rate-limit counters work."""
    where = "Redis" if settings.REDIS_URL else "the database"
    try:
        cache.add("doctor", 0, timeout=10)
        cache.incr("doctor")
    except (OSError, ValueError, RedisError) as error:
        return failed(f"{where}: {describe_error(error)}", "Check REDIS_URL. Is Redis running?")
    return ok(f"in {where}")


def check_worker() -> Finding:
    status, detail = readiness.check_worker()
    advice = "Start manage.py run_worker, or read its log: nothing evolves without a worker."
    return ok(detail) if status == "ok" else failed(detail, advice)


def check_queue() -> Finding:
    now = database_now()
    active = EvolutionJob.objects.active()
    due, stuck = active.due(now).count(), active.in_state("stuck", now).count()
    shown = f"{due} due, {stuck} stuck"
    if stuck:
        return failed(shown, "See admin → Evolutions → stuck; retry or cancel them there.")
    return ok(shown)
