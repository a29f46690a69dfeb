"""`manage.py load_starters`: create or update the starter playbooks from their files."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from playbooks.document.text import DocumentError
from playbooks.starters.loader import load_starters


class Command(BaseCommand):
    help = "Load the starter playbooks; a changed file becomes the starter's next version."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            changed = load_starters()
        except DocumentError as error:
            raise CommandError(str(error)) from None
        if changed:
            self.stdout.write(f"{changed} starter playbooks loaded or changed")
