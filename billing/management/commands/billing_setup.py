"""`manage.py billing_setup`: create products, prices, portal and webhook at Stripe."""

from argparse import ArgumentParser
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from billing.errors import require_billing
from billing.models import Plan
from billing.money import OVERAGE, Amount, to_minor_units
from billing.stripe import gateway
from core.errors import AceError

if TYPE_CHECKING:
    from billing.stripe.gateway.setup import SetupResult


class Command(BaseCommand):
    help = "Create products, prices, portal and webhook in Stripe; idempotent."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--price",
            action="append",
            default=[],
            metavar="PLAN=AMOUNT",
            help="such as pro=29, pro=290/year, or pro=1.20/overage for each $1 beyond the plan",
        )
        parser.add_argument("--currency", default="usd")
        parser.add_argument(
            "--no-webhook",
            action="store_true",
            help="events arrive through `stripe listen` instead",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        site = "" if options["no_webhook"] else settings.PUBLIC_URL
        if not site and not options["no_webhook"]:
            raise CommandError("Set PUBLIC_URL to the URL at which Stripe can reach this server.")
        try:
            require_billing()
            amounts = dict(parse_price(text, options) for text in options["price"])
            done = gateway.setup.set_up_billing(site=site, amounts=amounts)
        except AceError as error:
            raise CommandError(error.message) from None
        self.report(done)

    def report(self, done: "SetupResult") -> None:
        for plan in done.priced:
            beyond = f", {plan.overage_price}" if plan.overage_price else ""
            self.stdout.write(f"Plan {plan.slug}: sold for {plan.price}{beyond}.")
        if done.endpoint:
            self.stdout.write(
                f"Webhook: {done.endpoint} ({'created' if done.is_endpoint_new else 'unchanged'})."
            )
        if done.forgotten:
            self.stdout.write(f"Test-mode customers removed: {done.forgotten}.")
        if done.missing:
            raise CommandError(
                "No price in Stripe for: "
                + ", ".join(f"{plan.slug} ({plan.price_lookup_key})" for plan in done.missing)
                + f". Create it there, or pass --price {done.missing[0].slug}=29."
            )


def parse_price(text: str, options: dict[str, Any]) -> tuple[tuple[str, str], Amount]:
    """The plan slug, interval and amount of `pro=29.00` or `pro=290/year`. Raises CommandError."""
    slug, _, price = text.partition("=")
    amount, _, interval = price.partition("/")
    interval = interval or "month"
    slugs = [plan.slug for plan in Plan.objects.paid()]
    if slug not in slugs:
        raise CommandError(f"--price {text}: there is no paid plan {slug!r} ({', '.join(slugs)}).")
    currency = options["currency"].lower()
    try:
        units = to_minor_units(Decimal(amount), currency)
        if interval not in {"month", "year", OVERAGE}:
            raise ValueError(interval)
    except (InvalidOperation, ValueError):
        raise CommandError(
            f"--price {text}: use a value like pro=29, pro=29.50 or pro=290/year."
        ) from None
    return (slug, interval), Amount(units, currency, interval)
