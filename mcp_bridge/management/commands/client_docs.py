"""`manage.py client_docs`: writes docs/CLIENTS.md from mcp_bridge/clients."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from mcp_bridge.clients.markdown import client_docs


class Command(BaseCommand):
    help = "Write docs/CLIENTS.md, the snippets for every agent program; --check only compares."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="exit with 1 if out of date")

    def handle(self, *args: Any, **options: Any) -> None:
        path, text = settings.BASE_DIR / "docs" / "CLIENTS.md", client_docs()
        if not options["check"]:
            path.write_text(text)
            self.stdout.write(f"{path.name} is written.")
        elif not path.is_file() or path.read_text() != text:
            self.stderr.write("docs/CLIENTS.md is out of date: run `manage.py client_docs`.")
            raise SystemExit(1)
