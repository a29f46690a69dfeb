"""A full disk, a replaced file and a damaged database are told apart from a busy one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, OperationalError
from django.db.utils import ConnectionHandler
from django.test import RequestFactory

from config.management.database_errors import describe_database_error
from config.observability import readiness
from config.settings.environment import sqlite_database
from config.web.middleware import ErrorPageMiddleware
from core.rest.exceptions import exception_handler
from core.sql import storage_errors
from core.sql.sqlite.base import accept_new_file
from core.sql.storage_errors import storage_error

pytestmark = pytest.mark.django_db


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Any]:
    """A connection of the product's kind to a file of its own, with a table."""
    connection = ConnectionHandler({"default": sqlite_database(tmp_path)})["default"]
    connection.inc_thread_sharing()
    connection.cursor().execute("CREATE TABLE rows (text)")
    yield connection
    connection.close()


def fails(connection: Any, statement: str = "INSERT INTO rows VALUES ('x')") -> DatabaseError:
    with pytest.raises(DatabaseError) as raised, connection.cursor() as cursor:
        cursor.execute(statement)
    return raised.value


def code(error: DatabaseError) -> str:
    failed = storage_error(error)
    return failed.code if failed else ""


@pytest.fixture
def disk_full(file: Any) -> DatabaseError:
    file.cursor().execute("PRAGMA max_page_count = 2")
    return fails(file, "INSERT INTO rows VALUES (zeroblob(20000))")


def test_a_full_disk_says_so_in_rest(disk_full: DatabaseError) -> None:
    response = exception_handler(disk_full, {})
    assert response is not None and response.status_code == 503
    assert response.data["error"]["code"] == "disk_full"
    assert "disk is full" in response.data["error"]["message"]
    assert response["Retry-After"] == "60"


def test_a_full_disk_says_so_on_pages_and_in_the_log(
    disk_full: DatabaseError, rf: RequestFactory, caplog: pytest.LogCaptureFixture
) -> None:
    middleware = ErrorPageMiddleware(lambda request: None)  # type: ignore[arg-type]
    page = middleware.process_exception(rf.post("/"), disk_full)
    assert page is not None and page.status_code == 503
    assert b"Error 503" in page.content and b"disk is full" in page.content
    assert "disk is full" in caplog.text


def test_a_full_disk_makes_the_platform_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "is_disk_full", lambda: True)
    assert readiness.check_database() == ("failed", "disk_full")


def test_the_disk_counts_as_full_when_the_log_has_no_room_to_grow(
    file: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_errors, "connection", file)
    assert not storage_errors.is_disk_full()
    monkeypatch.setattr(storage_errors, "MIN_FREE_BYTES", 1 << 60)
    assert storage_errors.is_disk_full()


def test_a_removed_file_takes_no_more_statements(file: Any) -> None:
    Path(file.settings_dict["NAME"]).unlink()
    assert code(fails(file)) == "database_replaced"
    assert code(fails(file, "SELECT 1")) == "database_replaced"


def test_a_replaced_file_is_refused_by_new_connections_too(file: Any) -> None:
    path = Path(file.settings_dict["NAME"])
    path.rename(path.with_name("old"))
    path.write_bytes(b"")
    assert code(fails(file)) == "database_replaced"
    file.close()
    assert code(fails(file)) == "database_replaced"


def test_no_empty_database_is_made_in_the_place_of_one_that_was_removed(file: Any) -> None:
    path = Path(file.settings_dict["NAME"])
    file.close()
    path.unlink()
    assert code(fails(file)) == "database_replaced"
    assert not path.exists()


def test_a_restored_file_is_accepted(file: Any) -> None:
    path = Path(file.settings_dict["NAME"])
    file.close()
    path.unlink()
    accept_new_file(str(path))
    file.cursor().execute("CREATE TABLE rows (text)")


def test_a_damaged_file_is_reported_in_one_sentence(file: Any) -> None:
    file.close()
    path = Path(file.settings_dict["NAME"])
    path.write_bytes(b"no database at all " * 500)
    error = fails(file)
    assert code(error) == "database_corrupt"
    message = describe_database_error(error)
    assert "is damaged (file is not a database)" in message and "manage.py restore" in message


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        (psycopg.errors.DiskFull, "disk_full"),
        (psycopg.errors.DataCorrupted, "database_corrupt"),
        (psycopg.errors.DeadlockDetected, ""),
    ],
)
def test_postgresql_says_it_by_its_state(cause: type[psycopg.Error], expected: str) -> None:
    error = OperationalError("as Django wraps it")
    error.__cause__ = cause("no room")
    assert code(error) == expected


def test_a_lock_is_not_the_storages_fault(file: Any) -> None:
    other = ConnectionHandler({"default": file.settings_dict | {"OPTIONS": {"timeout": 0}}})
    file.cursor().execute("BEGIN IMMEDIATE")
    assert code(fails(other["default"])) == ""
    other["default"].close()
