"""Secrets that nobody set are made once, in a folder that every process shares."""

import os
import stat
import subprocess
import sys
from pathlib import Path

from django.conf import settings

from config.management.local_secrets import write_database_password


def secret_key(folder: Path) -> "subprocess.CompletedProcess[str]":
    code = "from config.settings import base as s; print(s.SECRET_KEY, s.JWT_SECRET_KEY)"
    url = "postgres://ace@localhost/ace"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=settings.BASE_DIR,
        env={"PATH": os.environ["PATH"], "DATABASE_URL": url, "ACE_SECRETS_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_production_server_keeps_the_secrets_it_made(tmp_path: Path) -> None:
    first, second = secret_key(tmp_path), secret_key(tmp_path)
    assert first.stdout == second.stdout
    made, of_tokens = first.stdout.split()
    assert made != of_tokens and len(made) >= 32
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600


def test_a_folder_for_secrets_that_is_not_there_stops_the_start(tmp_path: Path) -> None:
    ended = secret_key(tmp_path / "missing")
    assert "Set ACE_SECRETS_DIR to a directory of yours" in ended.stderr


def test_postgresql_and_libpq_read_one_password_that_stays(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    write_database_password(folder)
    password = (folder / "postgres_password").read_text().strip()
    write_database_password(folder)
    assert (folder / "pgpass").read_text() == f"*:*:*:*:{password}\n"
    assert stat.S_IMODE((folder / "pgpass").stat().st_mode) == 0o600
