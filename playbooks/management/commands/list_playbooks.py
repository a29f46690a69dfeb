"""`manage.py list_playbooks [words]`: id, name, owner, size and what waits."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from playbooks.models import Playbook


class Command(BaseCommand):
    help = "List all playbooks: ID, name, owner, version and what is pending."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "words", nargs="*", help="only those with this text in the name or description"
        )

    def handle(self, *args: Any, words: list[str], **options: Any) -> None:
        rows: Any = Playbook.objects.matching(" ".join(words)).for_list().select_related("owner")
        for row in rows.order_by("name", "created_at").iterator():
            owner = row.owner.email if row.owner else "starter"
            version = row.current_version.number if row.current_version else 0
            self.stdout.write(
                f"{row.pk}  {row.name}  ({owner}, {row.status}, version {version}, "
                f"{row.bullet_count} bullets, {row.pending_outcomes} outcomes and "
                f"{row.pending_reviews} reviews pending)"
            )
