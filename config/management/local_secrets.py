"""Secrets generated at the first start and kept in files.

`python -m config.management.local_secrets FOLDER` creates the database password of
docker-compose.yml before PostgreSQL starts.
"""

import secrets
import sys
from pathlib import Path


def read_or_create_secret(name: str, folder: Path) -> str:
    """The secret in the file `name` of the folder, generated if missing."""
    path = folder / name
    if not path.exists():
        fresh = path.with_name(f"{name}.{secrets.token_hex(4)}")
        fresh.touch(mode=0o600)
        fresh.write_text(secrets.token_urlsafe(48))
        # With two concurrent first starts link() succeeds for one; both then read the same file.
        try:
            path.hardlink_to(fresh)
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    return path.read_text().strip()


def write_database_password(folder: Path) -> None:
    """Write `postgres_password` for the server and `pgpass` for libpq; later starts keep both."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    password = read_or_create_secret("postgres_password", folder)
    passfile = folder / "pgpass"
    if not passfile.exists():
        passfile.touch(mode=0o600)
    # libpq reads no file that others may read.
    passfile.chmod(0o600)
    passfile.write_text(f"*:*:*:*:{password}\n")


if __name__ == "__main__":
    write_database_password(Path(sys.argv[1]))
