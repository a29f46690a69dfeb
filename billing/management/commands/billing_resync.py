from typing import Any

from django.core.management.base import BaseCommand, CommandError

from billing.stripe.sync import resync
from core.errors import AceError


class Command(BaseCommand):
    """Find what webhooks have missed. The worker does the same bit by bit, once a day for each."""

    help = "Read every subscription from Stripe again."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            done = resync()
        except AceError as error:
            raise CommandError(error.message) from None
        self.stdout.write(
            f"{done.read} read, {done.changed} changed, {done.forgotten} customers deleted."
        )
        if done.failed:
            raise CommandError("Stripe gave no answer: the rest was not read. Try again later.")
        if done.unknown:
            raise CommandError(
                f"{done.unknown} not known to Stripe under this key: is it the account and the "
                "mode that they were made with?"
            )
