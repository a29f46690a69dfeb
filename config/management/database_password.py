"""Create the database password of docker-compose.yml before PostgreSQL starts.

`python -m config.management.database_password FOLDER`: PostgreSQL reads `postgres_password`, libpq reads `pgpass`.
"""

import sys
from pathlib import Path

from config.management.local_secrets import read_or_create_secret

NAME = "postgres_password"


def write_password(folder: Path) -> None:
    """The password is in both files, the same as at every start before."""
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
