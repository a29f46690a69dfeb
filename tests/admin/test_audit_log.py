"""The audit log is append-only, in Python and in the database."""

import pytest
from django.db import IntegrityError, connection, transaction

from accounts.models import User
from core import audit
from core.models import AuditEntry


@pytest.fixture
def entry(alice: User) -> AuditEntry:
    audit.record(action="log_in", by=alice, subject=alice)
    return AuditEntry.objects.get(action="log_in")


def test_python_refuses_every_change(entry: AuditEntry) -> None:
    entry.action = "something_else"
    for change in (
        entry.save,
        entry.delete,
        AuditEntry.objects.all().delete,
        lambda: AuditEntry.objects.update(action="other"),
        lambda: AuditEntry.objects.bulk_update([entry], ["action"]),
    ):
        with pytest.raises(TypeError, match="append-only"):
            change()


def test_the_database_refuses_an_update(entry: AuditEntry) -> None:
    for column, value in (("action", "other"), ("actor", "somebody@else"), ("owner_id", None)):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            execute(f"UPDATE core_auditentry SET {column} = %s", value)  # noqa: S608 - our own names


@pytest.mark.skipif("connection.vendor == 'sqlite'", reason="a trigger there would stop flush")
def test_postgresql_refuses_a_delete(entry: AuditEntry) -> None:
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        execute("DELETE FROM core_auditentry WHERE action = %s", "log_in")


def test_a_deleted_user_is_named_by_id_alone(entry: AuditEntry, alice: User) -> None:
    assert AuditEntry.objects.anonymize(alice.pk) == 1
    entry.refresh_from_db()
    assert (entry.actor, entry.actor_id) == ("", alice.pk)


def execute(statement: str, *values: str | None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
