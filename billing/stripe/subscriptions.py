"""Checkout, billing portal and invoices of a user, for pages and REST."""

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from django.core.cache import cache
from django.db import transaction

from accounts.models import User
from billing.errors import AlreadySubscribed, NoStripeCustomer, PaymentUnavailable, require_billing
from billing.models import BillingAccount, Plan, TrialMark
from billing.models.accounts import keyed_digest
from billing.money import from_minor_units
from billing.stripe import gateway
from billing.stripe.subscription_state import UNSETTLED, from_timestamp, has_ever_subscribed
from billing.stripe.sync import sync_account
from core.audit import record
from core.errors import Conflict, Invalid, NotFound
from core.security.scopes import Principal

REFRESH_SECONDS = 5
LOCK_WAIT, LOCK_LIFETIME = 10, 120
"""Seconds that a second tab waits for the first, and after which an abandoned lock expires."""


def subscribe(
    *, user: User, plan: str, site: str, interval: str = "month", by: Principal | None = None
) -> str:
    """The URL of the Stripe checkout where the user pays for the plan with this slug.

    `interval`: month or year. `site` is the URL of this server. Nothing is granted before Stripe
    reports the subscription. Raises Invalid, AlreadySubscribed, PaymentUnavailable, Conflict
    (`plan_not_offered`, `checkout_busy`).
    """
    require_billing()
    chosen = _paid_plan(plan)
    if interval not in {"month", "year"}:
        raise Invalid.field("interval", "Choose one of: month, year.")
    price = gateway.stripe_api.find_price(chosen.lookup_keys[interval])
    if price is None:
        raise Conflict(
            f"The {chosen.name} plan is not for sale yet: its price is not set up.",
            code="plan_not_offered",
        )
    success, cancel = f"{site}/billing?paid=1", f"{site}/billing?paid=no"
    with checkout_lock(user):
        account = _not_subscribed(user)
        url = _checkout_url(account, chosen, price["id"], success_url=success, cancel_url=cancel)
    record(action="subscribe", by=by or user, subject=account, owner=user, plan=chosen.slug)
    return url


def _not_subscribed(user: User) -> BillingAccount:
    """The user's account with a Stripe customer. Raises AlreadySubscribed."""
    # Sync first: a payment of a second ago may not have arrived yet, and nobody should pay twice.
    account = sync_account(account=_ensure_customer(user))
    if not account.stripe_customer_id:
        account = sync_account(account=_ensure_customer(user))
    known = gateway.mirror.subscriptions_of(account.stripe_customer_id)
    if account.stripe_subscription_id or any(row["status"] in UNSETTLED for row in known):
        raise AlreadySubscribed
    return account


@contextmanager
def checkout_lock(user: User) -> Iterator[None]:
    """Serialize checkouts of a user: two tabs at once could open two pages and pay both.

    The second waits for the first. Raises Conflict (`checkout_busy`). The lock of a killed process
    expires after LOCK_LIFETIME.
    """
    key, until, pause = f"checkout-{user.pk}", time.monotonic() + LOCK_WAIT, threading.Event()
    token = secrets.randbelow(2**31)  # the database cache stores only numbers
    while not cache.add(key, token, LOCK_LIFETIME):
        if time.monotonic() > until:
            raise Conflict(
                "Another checkout is being opened, perhaps in another tab. Try again in a moment.",
                code="checkout_busy",
            )
        pause.wait(0.2)
    try:
        yield
    finally:
        # An expired lock may belong to another request by now.
        if cache.get(key) == token:
            cache.delete(key)


def _checkout_url(
    account: BillingAccount, plan: Plan, price: str, *, success_url: str, cancel_url: str
) -> str:
    """The open checkout for this plan, else a new one; all others are expired."""
    customer = account.stripe_customer_id
    had_one = has_ever_subscribed(gateway.mirror.subscriptions_of(customer))
    marks = TrialMark.objects.filter(digest=keyed_digest(account.user.email))
    trial_days = 0 if had_one or marks.exists() else plan.trial_days
    wanted = f"{price}:{trial_days}"
    page, newest = gateway.stripe_api.expire_checkouts(
        customer=customer, wanted=wanted, success_url=success_url
    )
    # Again: an open page may have been paid before it was expired.
    if newest and sync_account(account=account).stripe_subscription_id:
        raise AlreadySubscribed
    return page or gateway.stripe_api.create_checkout(
        customer=customer,
        price=price,
        trial_days=trial_days,
        success_url=success_url,
        cancel_url=cancel_url,
        wanted=wanted,
        newest=newest,
    )


def open_portal(*, user: User, site: str) -> str:
    """The URL of the billing portal, where the user changes card or plan, or cancels.

    Raises NoStripeCustomer, PaymentUnavailable.
    """
    account = _account_with_customer(user)
    if account is None:
        raise NoStripeCustomer
    return gateway.stripe_api.open_portal(
        customer=account.stripe_customer_id, return_url=f"{site}/billing"
    )


def refresh_subscription(*, user: User) -> BillingAccount | None:
    """Sync the user's account when they return from the checkout; None if it was not synced.

    At most every REFRESH_SECONDS. That a browser comes back grants nothing: only Stripe's answer.
    """
    account = _account_with_customer(user)
    if account and cache.add(f"billing-refreshed-{user.pk}", 1, REFRESH_SECONDS):
        with suppress(PaymentUnavailable):
            return sync_account(account=account)
    return None


def list_invoices(*, user: User) -> list[dict[str, Any]]:
    """The user's latest invoices, newest first, from the mirror without a request to Stripe.

    As Stripe sends them, but for `total` in the currency's usual unit and `created` as a time.
    """
    account = _account_with_customer(user)
    rows = gateway.mirror.invoices_of(account.stripe_customer_id) if account else []
    return [
        row
        | {
            "total": from_minor_units(row["total"], row["currency"]),
            "created": from_timestamp(row.get("created")),
        }
        for row in rows
        if row.get("status") != "draft"
    ]


def _account_with_customer(user: User) -> BillingAccount | None:
    """The user's account, if they have a customer at Stripe. Raises BillingDisabled."""
    require_billing()
    return BillingAccount.objects.filter(user=user).exclude(stripe_customer_id="").first()


def _paid_plan(slug: str) -> Plan:
    # Compared here: the slug of a form may hold characters that a database rejects.
    paid = {plan.slug: plan for plan in Plan.objects.paid()}
    if slug not in paid:
        raise Invalid.field("plan", f"Choose one of: {', '.join(paid)}.")
    return paid[slug]


def _ensure_customer(user: User) -> BillingAccount:
    """The user's account, with a customer created at Stripe. Raises PaymentUnavailable."""
    account = BillingAccount.objects.get_or_create(user=user)[0]
    if account.stripe_customer_id:
        return account
    # Concurrent requests see the same number and get the same customer; a request after the
    # customer was deleted at Stripe sees a higher number and gets a new customer.
    made = gateway.stripe_api.create_customer(
        user_id=user.pk, email=user.email, attempt=account.last_requested
    )
    with transaction.atomic():
        # Lock the account first, as everywhere, to avoid a deadlock.
        locked = BillingAccount.objects.select_for_update().filter(pk=account.pk).first()
        # Even if the account was deleted meanwhile, so that resync finds and deletes the customer.
        gateway.mirror.save_customer(made)
        if locked is not None and not locked.stripe_customer_id:
            locked.stripe_customer_id = made
            locked.save(update_fields=["stripe_customer_id", "updated_at"])
    if locked is None:
        raise NotFound("account")
    return locked
