"""`manage.py restore FILE`: restore a backup into an empty database."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.management.backups import BackupError, restore_backup


class Command(BaseCommand):
    help = "Restore a backup into an empty database; DATABASE_URL (or ACE_DATA_DIR) names it."
    requires_system_checks: list[str] = []  # there is no table yet

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", type=Path, help="a file that `manage.py backup` wrote")

    def handle(self, *args: Any, source: Path, **options: Any) -> None:
        try:
            restore_backup(source)
        except BackupError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            "Restored. Next: manage.py migrate, manage.py verify, and manage.py doctor encryption, "
            "which checks that FIELD_ENCRYPTION_KEYS decrypts it."
        )
