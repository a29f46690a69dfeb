"""`manage.py settings_docs`: write the variables of docs/CONFIGURATION.md from .env.example."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config.docs_site.settings_table import replace_settings_table


class Command(BaseCommand):
    help = "Write the list of variables in docs/CONFIGURATION.md; --check only compares."
    requires_system_checks: list[str] = []  # it reads two files only

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="exit with 1 if it is outdated")

    def handle(self, *args: Any, **options: Any) -> None:
        path = settings.BASE_DIR / "docs" / "CONFIGURATION.md"
        old = path.read_text()
        new = replace_settings_table(old, (settings.BASE_DIR / ".env.example").read_text())
        if options["check"] and old != new:
            raise CommandError("docs/CONFIGURATION.md is outdated: run `manage.py settings_docs`.")
        if not options["check"]:
            path.write_text(new)
            self.stdout.write(f"{path.name} written.")
