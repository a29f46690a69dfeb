"""`manage.py demo`: create or delete a demo account with sixty days of history."""

import secrets
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from config.demo.builder import DAYS, EMAIL, build_demo, demo_user, remove_demo
from core.errors import AceError


class Command(BaseCommand):
    help = (
        "Create a demo account with sixty days of history. No model is called and existing data "
        "stays unchanged. --remove deletes the account."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--remove", action="store_true", help="delete the demo account")
        parser.add_argument("--days", type=int, default=DAYS, help=f"days of history ({DAYS})")
        parser.add_argument("--password", default="", help="default: generated and printed once")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._remove() if options["remove"] else self._build(options)
        except AceError as error:
            raise CommandError(error.message) from None

    def _remove(self) -> None:
        removed = remove_demo()
        self.stdout.write("Demo account deleted." if removed else "There is no demo account.")

    def _build(self, options: dict[str, Any]) -> None:
        if demo_user() is not None:
            self.stdout.write(f"The demo account exists: log in as {EMAIL}. --remove deletes it.")
            return
        if settings.BILLING_ENABLED:
            raise CommandError("Plans would limit a demo: set BILLING_ENABLED=false.")
        # The first login is only created in an empty database, so it comes before the demo user.
        call_command("bootstrap", stdout=self.stdout, stderr=self.stderr)
        self.stdout.write("Creating the history. This may take a minute or two.")
        password = options["password"] or secrets.token_urlsafe(15)
        build_demo(password=password, days=options["days"])
        address = settings.PUBLIC_URL or f"http://127.0.0.1:{settings.PORT}"
        self.stdout.write(f"Demo account created. Log in at {address}/login as {EMAIL}")
        if not options["password"]:
            self.stdout.write(f"  password  {password}")
        if not settings.DEMO_LOGIN:
            self.stdout.write("With DEMO_LOGIN=true, the landing page offers it read-only.")
