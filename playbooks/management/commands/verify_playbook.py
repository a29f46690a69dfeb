"""`manage.py verify_playbook [id …]`: check that versions, deltas and rows agree."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from playbooks.management.lookups import playbook_named
from playbooks.models import Playbook
from playbooks.services.verification import verify_playbook


class Command(BaseCommand):
    help = (
        "Check that each version's deltas give the next one, byte for byte. "
        "Names what differs; the exit code is 1 when anything does."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("playbooks", nargs="*", help="ids or names; none: all")

    def handle(self, *args: Any, playbooks: list[str], **options: Any) -> None:
        rows = Playbook.objects.order_by("created_at")
        if playbooks:
            rows = rows.filter(pk__in=[playbook_named(name).pk for name in playbooks])
        problems: list[str] = []
        count = 0
        for playbook in rows.iterator():
            count += 1
            problems += [f"{playbook.pk}: {line}" for line in verify_playbook(playbook)]
        for problem in problems:
            self.stderr.write(problem)
        if problems:
            raise CommandError(f"{len(problems)} problems in {count} playbooks", returncode=1)
        self.stdout.write(f"{count} playbooks verified")
