"""A migrated database that tests begin with: `make test` makes it once, everybody copies it.

TEST_DATABASE_TEMPLATE names it: the path of an SQLite file, or a database beside that of
TEST_DATABASE_URL. Where it is not set, whoever makes a database migrates it anew.

Migrating takes 2 s of CPU, with billing 20, so what was made is kept in the user's cache folder,
under a name that says from which code and libraries. A run of the same code restores it.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.harness.postgres import PostgresNotFound, find_programs, fresh_database

TEMPLATE = os.environ.get("TEST_DATABASE_TEMPLATE", "")
MIGRATE = ["python", "manage.py", "migrate", "--verbosity", "0"]
ROOT = Path(__file__).parents[2]
SOURCES = ("accounts", "billing", "config", "core", "evolution", "mcp_bridge", "playbooks")
# What a migrated database comes from: migrations import nothing of the apps, permissions and
# content types are those of the models, and `migrate` loads the roles.
MIGRATED_FROM = {
    "migrations",
    "models",
    "models.py",
    "apps.py",
    "settings",
    "migrate.py",
    "roles.py",
}
KEPT_TEMPLATES = 6


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


def cache_folder() -> Path | None:
    """A folder for what runs may share; None where nothing can be kept."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "ace-platform" / "tests"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


def kept_template(database: str, folder: Path) -> Path:
    """Where the template of these models, libraries and this kind of database is kept."""
    digest = hashlib.sha256(f"{database} {sys.version}".encode())
    files = [file for source in SOURCES for file in (ROOT / source).rglob("*.py")]
    files = [file for file in files if MIGRATED_FROM & {*file.relative_to(ROOT).parts}]
    for file in sorted([*files, *(ROOT / "requirements").glob("*.txt")]):
        digest.update(f"{file.relative_to(ROOT)} {file.stat().st_size}\n".encode())
        digest.update(file.read_bytes())
    return folder / f"{database}-{digest.hexdigest()[:20]}.template"


def restore_command(kept: Path, name: str, url: str) -> list[str]:
    """What makes the template from a kept one."""
    if not url:
        return [str(shutil.which("cp")), str(kept), name]
    return [*_client("pg_restore", url), "--exit-on-error", "--no-owner", str(kept)]


def keep_template(kept: Path, name: str, url: str) -> None:
    """Keep what was migrated, whole or not at all, and drop the oldest."""
    part = kept.with_suffix(f".{os.getpid()}")
    if url:
        dump = [*_client("pg_dump", url), "--format=custom", "--file", str(part)]
        if subprocess.run(dump, check=False, env=os.environ | password_of(url)).returncode:
            return
    else:
        shutil.copyfile(name, part)
    part.replace(kept)
    by_age = sorted(kept.parent.glob("*.template"), key=lambda file: file.stat().st_mtime)
    for old in by_age[:-KEPT_TEMPLATES]:
        old.unlink(missing_ok=True)


def can_keep(url: str) -> bool:
    """Whether the programs are here that dump and restore."""
    try:
        return not url or all(
            (find_programs() / name).is_file() for name in ("pg_dump", "pg_restore")
        )
    except PostgresNotFound:
        return False


def password_of(url: str) -> dict[str, str]:
    """The environment in which PostgreSQL's programs log in; their command lines are public."""
    return {"PGPASSWORD": urlsplit(url).password or ""} if url else {}


def _client(program: str, url: str) -> list[str]:
    where = urlsplit(url)
    address = ["--host", where.hostname or "", "--port", str(where.port or 5432)]
    login = ["--username", where.username or "", "--dbname", where.path.lstrip("/")]
    return [str(find_programs() / program), *address, *login]
