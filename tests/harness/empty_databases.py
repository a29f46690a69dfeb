"""Databases beside the one of the tests, and commands of ours that run on them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

from tests.harness.platform_process import own_database

NAMES = ("SECRET_KEY", "JWT_SECRET_KEY", "FIELD_ENCRYPTION_KEYS")


@contextmanager
def empty_database(folder: Path) -> Iterator[dict[str, str]]:
    """The environment of a process whose database is new: SQLite, or beside TEST_DATABASE_URL."""
    env = {"PATH": os.environ["PATH"], "ACE_DATA_DIR": str(folder), "HTTPS": "false"}
    with own_database() as url:
        yield env | {name: os.environ[name] for name in NAMES} | {"DATABASE_URL": url}


def manage(env: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """What `manage.py …` printed and how it ended."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=settings.BASE_DIR,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
