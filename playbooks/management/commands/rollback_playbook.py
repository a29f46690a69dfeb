"""`manage.py rollback_playbook <playbook> <number> --as <e-mail>`: make an old version current."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.errors import AceError
from core.security.scopes import Principal
from playbooks.management.lookups import playbook_named, user_with_email
from playbooks.models import Playbook
from playbooks.services.rollback import rollback_playbook


class Command(BaseCommand):
    help = (
        "Create a new version with the text of an older one; nothing is deleted. Its author is "
        "--as: the playbook's owner, or staff."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("playbook", help="its id or name")
        parser.add_argument("number", type=int)
        parser.add_argument("--as", dest="email", required=True, help="e-mail of its author")

    def handle(self, *args: Any, number: int, email: str, **options: Any) -> None:
        user = user_with_email(email)
        rows = Playbook.objects.all() if user.is_staff else Playbook.objects.for_user(user)
        try:
            version = rollback_playbook(
                playbook=playbook_named(options["playbook"], rows),
                by=Principal.of(user),
                number=number,
            )
        except AceError as error:
            raise CommandError(error.message) from None
        self.stdout.write(f"version {version.number} reads like version {number}")
