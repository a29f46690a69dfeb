"""Create the database password of docker-compose.yml before PostgreSQL starts.

`python -m config.management.database_password FOLDER` writes `postgres_password` for the server
and `pgpass` for libpq.
"""

import sys
from pathlib import Path

from config.management.local_secrets import read_or_create_secret

NAME = "postgres_password"


def write_password(folder: Path) -> None:
    """Write the password to both files; later starts keep the first one."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    password = read_or_create_secret(NAME, folder)
    passfile = folder / "pgpass"
    if not passfile.exists():
        passfile.touch(mode=0o600)
    # libpq reads no file that others may read.
    passfile.chmod(0o600)
    passfile.write_text(f"*:*:*:*:{password}\n")


if __name__ == "__main__":
    write_password(Path(sys.argv[1]))
