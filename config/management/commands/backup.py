"""`manage.py backup TARGET`: a copy of the database, while the platform runs."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from config.management.backups import write_backup

NOT_INCLUDED = (
    "Not included: SECRET_KEY, JWT_SECRET_KEY, FIELD_ENCRYPTION_KEYS. Back them up separately."
)


class Command(BaseCommand):
    help = "Write a consistent copy of the database into a file or folder."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("target", type=Path, help="a new file, or a folder")

    def handle(self, *args: Any, target: Path, **options: Any) -> None:
        written = write_backup(target)
        self.stdout.write(f"{written} ({written.stat().st_size} bytes). {NOT_INCLUDED}")
