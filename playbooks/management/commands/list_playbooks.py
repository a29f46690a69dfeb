"""`manage.py list_playbooks [words] [--json]`: id, name, owner, size and what waits."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from playbooks.models import Playbook

LINE = (
    "{id}  {name}  ({owner}, {status}, version {version}, {bullets} bullets, "
    "{pending_outcomes} outcomes and {pending_reviews} reviews pending)"
)


class Command(BaseCommand):
    help = "List all playbooks: id, name, owner, version and what is pending."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "words", nargs="*", help="only those with this text in the name or description"
        )
        parser.add_argument("--json", action="store_true", help="one JSON object per line")

    def handle(self, *args: Any, words: list[str], **options: Any) -> None:
        rows: Any = Playbook.objects.matching(" ".join(words)).for_list().select_related("owner")
        for row in rows.order_by("name", "created_at").iterator():
            found = {
                "id": str(row.pk),
                "name": row.name,
                "owner": row.owner.email if row.owner else "starter",
                "status": row.status,
                "version": row.current_version.number if row.current_version else 0,
                "bullets": row.bullet_count,
                "pending_outcomes": row.pending_outcomes,
                "pending_reviews": row.pending_reviews,
            }
            self.stdout.write(json.dumps(found) if options["json"] else LINE.format(**found))
