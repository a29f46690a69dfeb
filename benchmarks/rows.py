"""The data of the benchmarked server, and the bare queries that it is compared with."""

import secrets
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from accounts.browser_sessions.store import SessionStore
from accounts.keys.api_keys import create_api_key
from accounts.models import User
from core.security.scopes import KEY_SCOPES, Principal
from evolution.models import Outcome
from playbooks.models import Playbook, Version
from playbooks.services.creation import import_playbook

BULLETS = 130  # about 20 KB
PAGE = 50


def prepare(lists: list[int]) -> dict[str, Any]:
    """Tables, a person with key and session, a playbook of 20 KB, and one for each of `lists`."""
    call_command("migrate", verbosity=0)
    # The temporary PostgreSQL serves several runs, each with a person of its own.
    email = f"load-{secrets.token_hex(4)}@example.org"
    user = User.objects.create_user(email, secrets.token_urlsafe(24))
    token = create_api_key(user=user, name="load", scopes=KEY_SCOPES, notify=False)[1]
    where = {
        "token": token,
        "cookie": f"{settings.SESSION_COOKIE_NAME}={open_session(user)}",
        "playbook_id": str(make_playbook(user).pk),
        "lists": {str(count): str(make_list(user, count).pk) for count in lists},
    }
    plan_by_figures()
    return where


def plan_by_figures() -> None:
    """Do on PostgreSQL what autovacuum would do meanwhile; on SQLite nobody does."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def open_session(user: User) -> str:
    """The session of a logged-in user."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return str(session.session_key)


def make_playbook(user: User) -> Playbook:
    lines = [
        f"[str-{n:05}] helpful=0 harmful=0 :: {'Read the failing test before the code. ' * 4}{n}"
        for n in range(1, BULLETS + 1)
    ]
    text = "\n".join(["## STRATEGIES & INSIGHTS", *lines])
    return import_playbook(by=Principal.of(user), name="Load", content=text)


def make_list(user: User, count: int) -> Playbook:
    """A playbook with so many outcomes; rows in bulk, past the services."""
    text = "## STRATEGIES & INSIGHTS\n[str-00001] helpful=0 harmful=0 :: Read the whole message."
    playbook = import_playbook(by=Principal.of(user), name=f"With {count} outcomes", content=text)
    now, version = timezone.now(), playbook.current_version
    for start in range(0, count, 5_000):
        Outcome.objects.bulk_create(
            Outcome(
                playbook=playbook,
                reported_by=user,
                client=("claude-code 2.1", "codex 0.9")[n % 2],
                task_description=f"Task {n}: make the build green",
                status=("success", "failure", "partial")[n % 3],
                notes="The flag was set twice.",
                version=version,
                cited_bullets=["str-00001"],
                processed_at=now,
                created_at=now - timedelta(minutes=n),
            )
            for n in range(start, min(start + 5_000, count))
        )
    return playbook


def read_bare(pk: str) -> str:
    found = Playbook.objects.select_related("current_version").get(pk=pk)
    return found.current_version.text if found.current_version else ""


def insert_bare(pk: str) -> str:
    version = Version.objects.only("pk").get(playbook_id=pk, number=1)
    row = Outcome.objects.create(
        playbook_id=pk,
        version=version,
        task_description="Make the build green",
        status="success",
    )
    return str(row.pk)


def settle(pk: str) -> str:
    """Nothing waits any more."""
    waiting = Outcome.objects.pending().filter(playbook_id=pk)
    return str(waiting.update(processed_at=timezone.now()))


def list_bare(pk: str) -> str:
    rows = Outcome.objects.filter(playbook_id=pk).order_by("-created_at", "-id")[:PAGE]
    return "\n".join(row.task_description for row in rows)
