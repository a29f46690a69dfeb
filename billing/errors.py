"""What can go wrong with plans and payment, beside what core.errors knows."""

from datetime import datetime
from decimal import Decimal

from django.conf import settings

from core.errors import AceError, Conflict, Invalid


class LimitReached(Exception):
    """A limit on cost, or the owner's plan, leaves no room before `until`; the text says which.

    `is_busy`: there is room, but it is held for work under way. `mark` and `want`, the most that
    the call can cost in US dollars, are kept with what waits: admission.has_quota takes them.
    """

    code: str
    until: datetime
    mark: str
    want: Decimal | None = None
    is_busy = False


class BillingDisabled(AceError):
    """Plans and payment are not switched on here."""

    code = "billing_disabled"
    status = 404

    def __init__(self) -> None:
        super().__init__(
            "Billing is not enabled on this server: there is no plan to choose or to pay for."
        )


class PaymentUnavailable(AceError):
    """The payment provider gave no answer, or a wrong one; nothing has changed."""

    code = "payment_unavailable"
    status = 503

    def __init__(self) -> None:
        super().__init__(
            "The payment provider does not answer just now. Nothing was changed and nothing "
            "charged. Try again in a minute."
        )


class NotFoundAtStripe(PaymentUnavailable):
    """The key is not of the account, or not of the mode, that this was made with."""


class InvalidWebhookSignature(Invalid):
    """An event that the payment provider has not signed, or signed too long ago."""

    code = "bad_signature"

    def __init__(self) -> None:
        super().__init__("This event is not signed with a secret of ours, or is too old.")


class AlreadySubscribed(Conflict):
    """There is a subscription; a second one would be paid beside it."""

    code = "already_subscribed"

    def __init__(self) -> None:
        super().__init__(
            "You have a subscription already. Change or cancel it in the payment portal "
            "(POST /billing/portal)."
        )


class CheckoutInProgress(Conflict):
    """Another page to pay at is being opened for the same person: two could both be paid."""

    code = "checkout_busy"

    def __init__(self) -> None:
        super().__init__(
            "Another payment page is just being opened for you, in another tab perhaps. Try again "
            "in a moment: that page is closed then."
        )


class NoStripeCustomer(Conflict):
    """The payment provider does not know this person yet."""

    code = "no_customer"

    def __init__(self) -> None:
        super().__init__("You have never chosen a paid plan: there is nothing to manage yet.")


class PlanNotForSale(Conflict):
    """The plan is there, and its price is not: the operator has to run `billing_setup`."""

    code = "plan_not_offered"

    def __init__(self, plan: str) -> None:
        super().__init__(
            f"The plan {plan} cannot be bought yet: the operator has not set its price up."
        )


def require_billing() -> None:
    """Raise BillingDisabled unless plans and payment are switched on."""
    if not settings.BILLING_ENABLED:
        raise BillingDisabled
