"""`manage.py billing_resync`: sync all accounts with Stripe."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from billing.stripe.sync import resync
from core.errors import AceError


class Command(BaseCommand):
    """Apply changes that webhooks missed; the worker syncs each account once a day as well."""

    help = "Sync every subscription from Stripe."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            done = resync()
        except AceError as error:
            raise CommandError(error.message) from None
        self.stdout.write(
            "{read} read, {changed} changed, {forgotten} customers deleted.".format_map(done)
        )
        if done["failed"]:
            raise CommandError("Stripe did not respond: the rest was not synced. Try again later.")
        if done["unknown"]:
            raise CommandError(
                f"{done['unknown']} unknown to Stripe with this key. Check that it belongs to the "
                "right account and mode."
            )
