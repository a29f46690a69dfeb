"""Export of all data of an account, and deletion without a trace."""

import io
import json
import logging
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client

from accounts.keys.authentication import principal_for_key
from accounts.keys.jwt_tokens import issue_tokens
from accounts.keys.llm_keys import set_llm_key
from accounts.models import LlmKey, User
from accounts.services.personal_data import delete_account, export_account
from billing.models import UsageRecord
from core.errors import Conflict
from core.models import AuditEntry
from evolution.jobs.lifecycle import trigger_evolution
from playbooks.models import Playbook
from tests.factories import PASSWORD, make_user
from tests.harness.concurrency import run_concurrently
from tests.harness.mfa import set_up_totp
from tests.harness.rest_client import Rest
from tests.harness.rest_routes import make_world

CANARY = "canary-9d1f"
EMAIL = f"{CANARY}@example.org"


def files(user: User) -> dict[str, Any]:
    archive = zipfile.ZipFile(io.BytesIO(export_account(user=user)))
    names = [name for name in archive.namelist() if name.endswith(".json")]
    return {name: json.loads(archive.read(name)) for name in names}


def dump() -> dict[str, str]:
    """Every row of every table as text, as a dump of the database would show it."""
    found = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - the database's own names
            found[table] = repr(cursor.fetchall())
    return found


def around(text: str) -> str:
    """The text around the canary, to find its source."""
    here = text.index(CANARY)
    return text[max(0, here - 150) : here + 60]


def sessions() -> str:
    """The decoded data of all sessions."""
    return str([session.get_decoded() for session in Session.objects.all()])


@pytest.fixture
def person(db: None) -> User:
    """A user with the canary in every kind of row."""
    user = make_user(EMAIL, is_staff=True)
    world = make_world(user, canary=CANARY)
    set_llm_key(user=user, api_key=f"sk-{CANARY}")
    set_up_totp(user)
    issue_tokens(user=user)
    client = Client()
    client.force_login(user)
    client.get("/settings/sessions")
    headers = {"Idempotency_Key": f"once-{CANARY}"}
    Rest.of(user).post(f"/playbooks/{world.ids['playbook']}/clone", {"name": CANARY}, **headers)
    LogEntry.objects.log_actions(user.pk, [user], CHANGE, single_object=True)
    return user


@pytest.mark.databases
def test_an_export_has_every_kind_of_row(person: User) -> None:
    UsageRecord.objects.create(user=person, step="curate", operation="curate", attempt=1)
    found = files(person)
    for name in ("accounts.user", "playbooks.version", "evolution.outcome", "core.auditentry"):
        assert found[f"{name}.json"], name
    assert len(found["billing.usagerecord.json"]) == 1
    assert found["accounts.user.json"][0]["email"] == EMAIL


def test_an_export_holds_no_secret(person: User) -> None:
    text = json.dumps(files(person))
    key = LlmKey.objects.get(user=person)
    assert f"sk-{CANARY}" not in text
    assert key.encrypted_key not in text
    assert person.password not in text


def test_an_export_has_nothing_of_others(person: User, charlie: User) -> None:
    make_world(charlie, canary="of-charlie")
    assert "of-charlie" not in json.dumps(files(person))
    assert "charlie@" not in json.dumps(files(person))


@pytest.mark.databases
def test_nothing_is_left_of_a_deleted_account(
    person: User, charlie: User, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    make_world(charlie, canary="of-charlie")
    assert CANARY in str(dump())
    delete_account(user=person)
    left = {table: around(rows) for table, rows in dump().items() if CANARY in rows}
    assert left == {}
    assert CANARY not in sessions() + caplog.text
    assert str(person.pk) not in str(dump()["accounts_user"])
    assert Playbook.objects.filter(owner=charlie).exists()


def test_no_file_of_ours_names_a_deleted_account(person: User) -> None:
    delete_account(user=person)
    kept = [path for path in Path(settings.DATA_DIR).rglob("*") if path.is_file()]
    texts = [
        path for path in kept if path.suffix not in {".sqlite3", ".sqlite3-wal", ".sqlite3-shm"}
    ]
    assert [path for path in texts if CANARY.encode() in path.read_bytes()] == []


def test_the_audit_log_keeps_entries_without_the_name(person: User) -> None:
    gone = person.pk
    delete_account(user=person)
    entry = AuditEntry.objects.filter(action="delete_account").get()
    assert (entry.actor_id, entry.actor) == (gone, "")


def test_a_running_job_is_deleted_with_its_owner(charlie: User) -> None:
    world = make_world(charlie)
    playbook = Playbook.objects.get(pk=world.ids["playbook"])
    trigger_evolution(playbook=playbook, by=principal_for_key(world.token))
    delete_account(user=charlie)
    assert not Playbook.objects.filter(owner__isnull=False).exists()


def test_the_last_superuser_stays(staff: User) -> None:
    with pytest.raises(Conflict):
        delete_account(user=staff)


@pytest.mark.django_db(transaction=True)
@pytest.mark.databases
def test_of_two_superusers_deleted_at_once_one_stays(staff: User) -> None:
    pair = [staff, make_user("second@example.org", is_staff=True, is_superuser=True)]

    def goes(number: int) -> bool:
        try:
            delete_account(user=pair[number])
        except Conflict:
            return False
        return True

    assert sorted(run_concurrently(2, goes)) == [False, True]


def test_rest_exports_the_same(person: User) -> None:
    answer = Rest.of(person).get("/auth/me/export")
    assert answer["Content-Type"] == "application/zip"
    archive = zipfile.ZipFile(io.BytesIO(answer.content))
    assert "accounts.user.json" in archive.namelist()


def test_rest_deletion_requires_the_password(charlie: User) -> None:
    rest = Rest.of(charlie)
    assert rest.send("DELETE", "/auth/me", {"password": "wrong"}).status_code == 400
    assert rest.send("DELETE", "/auth/me", {"password": PASSWORD}).status_code == 204
    assert not User.objects.filter(pk=charlie.pk).exists()


def test_rest_deletion_requires_the_second_factor_too(charlie: User) -> None:
    set_up_totp(charlie)
    answer = Rest.of(charlie).send("DELETE", "/auth/me", {"password": PASSWORD})
    assert answer.json()["error"]["code"] == "second_factor_required"
