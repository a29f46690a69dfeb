"""`manage.py enrol_second_factor`: an enrolment link, where e-mail is not available."""

from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from accounts.mfa.second_factor import enrolment_path
from accounts.models import User
from core.audit import record


class Command(BaseCommand):
    help = "Print a link to set up a first second factor, valid for an hour."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email")

    def handle(self, *, email: str, **options: object) -> None:
        user = User.objects.filter(email=email.strip().lower(), is_active=True).first()
        if user is None:
            raise CommandError("No active account has this email.")
        record(action="request_enrolment", by=None, subject=user, owner=user)
        self.stdout.write(f"{settings.PUBLIC_URL}{enrolment_path(user)}")
