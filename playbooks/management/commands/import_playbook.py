"""`manage.py import_playbook <file> --as <e-mail>`: a playbook from a file, or its preview."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import User
from core.errors import AceError
from core.security.scopes import Principal
from playbooks.document.imports import Entry, read_file
from playbooks.document.text import DocumentError
from playbooks.services.creation import import_playbook, preview_import


class Command(BaseCommand):
    help = (
        "Create a playbook from ACE text, JSON, Markdown or a cheatsheet. "
        "With --dry-run it only lists how each line would become a bullet."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--as", dest="email", default="", help="email of its owner")
        parser.add_argument("--name", default="", help="default: the name in the text")
        parser.add_argument("--description", default="")
        parser.add_argument("--dry-run", action="store_true", help="preview; write nothing")

    def handle(self, *args: Any, file: Path, dry_run: bool, **options: Any) -> None:
        named = {name: options[name] for name in ("name", "description")}
        try:
            content = read_file(file.read_bytes())
            if not dry_run:
                email = options["email"].strip().lower()
                user = User.objects.filter(email=email, is_active=True).first()
                if user is None:
                    raise CommandError("No active account has this email.")
                made = import_playbook(by=Principal.of(user), content=content, **named)
                self.stdout.write(f"{made.pk}  {made.name}")
                return
            found = preview_import(content=content)
        except (AceError, DocumentError, OSError) as error:
            raise CommandError(str(error)) from None
        for entry in found.entries:
            self.stdout.write(_line(entry))
        self.stdout.write(f"{found.bullet_count} bullets from {found.format}")


def _line(entry: Entry) -> str:
    place = f"line {entry.line}: " if entry.line else ""
    if entry.skipped:
        return f"{place}skipped: {entry.skipped} ({entry.content[:60]})"
    return f"{place}[{entry.id}] {entry.section}: {entry.content}"
