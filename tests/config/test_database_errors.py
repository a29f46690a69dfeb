"""A database that is away ends a command with one sentence; one that refuses is no absence."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.db import connection, transaction
from django.db.utils import DatabaseError, OperationalError

from config.management.database_errors import describe_database_error
from tests.harness.postgres import free_port


def as_django_says(cause: Exception) -> OperationalError:
    error = OperationalError(*cause.args)
    error.__cause__ = cause
    return error


def test_a_command_reports_it_at_once_without_the_password(tmp_path: Path) -> None:
    url = f"postgres://ace:hunter2@127.0.0.1:{free_port()}/ace"
    ended = subprocess.run(
        [sys.executable, "manage.py", "migrate"],
        cwd=settings.BASE_DIR,
        env={"PATH": os.environ["PATH"], "ACE_DATA_DIR": str(tmp_path), "ACE_LOCAL": "true"}
        | {"DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1 and ended.stdout == ""
    (output,) = ended.stderr.splitlines()
    assert output.startswith("The database does not answer: connection")
    assert "manage.py doctor database" in output and "hunter2" not in output


def test_a_file_that_cannot_be_opened_is_reported() -> None:
    with pytest.raises(sqlite3.OperationalError) as caught:
        sqlite3.connect("/missing/folder/ace.sqlite3")
    assert "unable to open database file" in describe_database_error(as_django_says(caught.value))


@pytest.mark.django_db
def test_a_database_older_than_the_code_is_reported() -> None:
    with pytest.raises(DatabaseError) as caught, transaction.atomic():
        connection.cursor().execute("SELECT * FROM of_tomorrow")
    assert describe_database_error(caught.value) == ""
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'sessions'")
    assert "run manage.py migrate" in describe_database_error(caught.value)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "cause",
    [psycopg.errors.LockNotAvailable("x"), psycopg.errors.QueryCanceled("x")],
    ids=["lock", "time-out"],
)
def test_what_a_server_refused_keeps_its_traceback(cause: Exception) -> None:
    assert describe_database_error(as_django_says(cause)) == ""
