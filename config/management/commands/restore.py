"""`manage.py restore FILE --to URL`: restore a backup into an empty database and verify it."""

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from config.management.backups import restore_backup
from core.sql.database_address import database_address


class Command(BaseCommand):
    help = "Restore a backup into an empty database, migrate it and verify it."
    requires_system_checks: list[str] = []  # there is no table yet

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", type=Path, help="a file that `manage.py backup` wrote")
        parser.add_argument(
            "--to",
            metavar="URL|FOLDER",
            help="the empty database, or for SQLite its folder; without it that of the settings",
        )

    def handle(self, *args: Any, source: Path, to: str | None, **options: Any) -> None:
        if to:
            # Many settings follow from the database, so this process begins again with the new one.
            server = "://" in to
            os.environ |= (
                {"DATABASE_URL": to} if server else {"DATABASE_URL": "", "ACE_DATA_DIR": to}
            )
            os.execv(sys.executable, [sys.executable, sys.argv[0], "restore", str(source)])  # noqa: S606 - our own command line, no shell
        self.stderr.write(f"Restoring into {database_address()}.")
        restore_backup(source)
        call_command("migrate", interactive=False, verbosity=0)
        call_command("verify", stdout=self.stdout, stderr=self.stderr)
        self.stdout.write(
            "Restored, migrated and verified. Next: manage.py doctor encryption, which checks that "
            "FIELD_ENCRYPTION_KEYS decrypts it; then point DATABASE_URL at it and restart."
        )
