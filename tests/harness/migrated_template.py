"""A migrated database that tests begin with: `make test` makes it once, everybody copies it.

TEST_DATABASE_TEMPLATE names it: the path of an SQLite file, or a database beside that of
TEST_DATABASE_URL. Where it is not set, whoever makes a database migrates it anew.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.harness.postgres import fresh_database

TEMPLATE = os.environ.get("TEST_DATABASE_TEMPLATE", "")
MIGRATE = ["python", "manage.py", "migrate", "--verbosity", "0"]


@contextmanager
def template_to_migrate(server: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the name of a database that MIGRATE makes, and the environment in which it does."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"ACE_DATA_DIR": folder, "BILLING_ENABLED": "false", "DATABASE_URL": ""}
        if not server:
            yield str(Path(folder) / "ace.sqlite3"), environment
            return
        with fresh_database(server) as url:
            yield urlsplit(url).path.lstrip("/"), environment | {"DATABASE_URL": url}
