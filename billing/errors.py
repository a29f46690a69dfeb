"""Errors of plans, limits and payment."""

from datetime import datetime
from decimal import Decimal

from django.conf import settings

from core.errors import AceError, Conflict, Invalid


class LimitReached(Exception):
    """A cost limit or the owner's plan leaves no room before `until`; the message says which.

    `is_busy`: there is room, but it is reserved for running work. `mark` and `want`, the maximum
    cost of the call in US dollars, are stored with the waiting job for admission.has_quota.
    """

    code: str
    until: datetime
    mark: str
    want: Decimal | None = None
    is_busy = False


class BillingDisabled(AceError):
    """Billing is off on this server."""

    code = "billing_disabled"
    status = 404
    message = "Billing is not enabled on this server: there are no plans to choose."


class PaymentUnavailable(AceError):
    """Stripe did not answer, or answered with an error; nothing has changed."""

    code = "payment_unavailable"
    status = 503
    message = (
        "The payment provider is not responding. Nothing was changed or charged. Try again in a "
        "minute."
    )


class NotFoundAtStripe(PaymentUnavailable):
    """The object belongs to another Stripe account or mode than the configured key."""


class InvalidWebhookSignature(Invalid):
    """A webhook event without a valid signature, or with one that is too old."""

    code = "bad_signature"
    message = "The signature of this event is invalid or too old."


class AlreadySubscribed(Conflict):
    """The user has a subscription; a second one would be charged as well."""

    code = "already_subscribed"
    message = (
        "You already have a subscription. Change or cancel it with Manage billing, or POST "
        "/billing/portal."
    )


class NoStripeCustomer(Conflict):
    """The user has no customer at Stripe yet."""

    code = "no_customer"
    message = "You have no paid plan yet, so there is no payment to manage."


def require_billing() -> None:
    """Raise BillingDisabled while billing is off."""
    if not settings.BILLING_ENABLED:
        raise BillingDisabled
