"""What people do about their plan: choose one, pay, change it. The pages and REST call these."""

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.core.cache import cache
from django.db import transaction

from accounts.models import User
from billing.errors import (
    AlreadySubscribed,
    CheckoutInProgress,
    NoStripeCustomer,
    PlanNotForSale,
    require_billing,
)
from billing.models import AccountSync, BillingAccount, Plan
from billing.stripe import gateway
from billing.stripe.money import from_minor_units
from billing.stripe.subscription_state import from_timestamp, has_ever_subscribed
from billing.stripe.sync import sync_account
from core.audit import record
from core.errors import Invalid, NotFound
from core.security.scopes import Principal

PATIENCE, LONGEST = 10, 120
"""Seconds: so long a second tab waits for the first; and no choice of a plan takes longer."""


@dataclass(frozen=True)
class PaidInvoice:
    """One invoice as its page shows it; `url` leads to Stripe's page, where an open one is paid."""

    number: str
    status: str
    total: Decimal
    currency: str
    created: datetime | None
    url: str
    pdf: str


def offered_plans() -> list[Plan]:
    """The plans that can be chosen, the cheapest first as staff has ordered them."""
    return list(Plan.objects.filter(is_active=True))


def subscribe(*, user: User, plan: str, site: str, by: Principal | None = None) -> str:
    """The address of the page at Stripe where this person pays for the plan named `plan`.

    Nothing is granted before Stripe says that there is a subscription. `site` is the address of
    this server. Raises Invalid, AlreadySubscribed, CheckoutInProgress, PlanNotForSale,
    PaymentUnavailable.
    """
    require_billing()
    chosen = _paid_plan(plan)
    price = gateway.stripe_api.find_price(chosen.price_lookup_key)
    if price is None:
        raise PlanNotForSale(chosen.name)
    success, cancel = f"{site}/billing?paid=1", f"{site}/billing?paid=no"
    with checkout_lock(user):
        account = _not_subscribed(user)
        url = _checkout_url(account, chosen, price, success_url=success, cancel_url=cancel)
    record(action="subscribe", by=by or user, subject=account, owner=user, plan=chosen.slug)
    return url


def _not_subscribed(user: User) -> BillingAccount:
    """The person's account, known to Stripe. Raises AlreadySubscribed."""
    # Read now: a payment of a second ago may not have reached us, and nobody should pay twice.
    account = sync_account(account=_with_customer(user))
    if not account.stripe_customer_id:
        account = sync_account(account=_with_customer(user))
    if account.stripe_subscription_id:
        raise AlreadySubscribed
    return account


@contextmanager
def checkout_lock(user: User) -> Iterator[None]:
    """Two tabs at one moment would each see no page of the other, and both could be paid.

    The second waits a little for the first. Raises CheckoutInProgress. What a killed process has taken is
    free again after LONGEST.
    """
    taken, until, pause = f"checkout-{user.pk}", time.monotonic() + PATIENCE, threading.Event()
    # A number: the counters of a database keep nothing else.
    mine = secrets.randbelow(2**31)
    while not cache.add(taken, mine, LONGEST):
        if time.monotonic() > until:
            raise CheckoutInProgress
        pause.wait(0.2)
    try:
        yield
    finally:
        # After LONGEST it may be somebody else's by now.
        if cache.get(taken) == mine:
            cache.delete(taken)


def _checkout_url(
    account: BillingAccount, plan: Plan, price: str, *, success_url: str, cancel_url: str
) -> str:
    """The page that is open for this plan, else a new one; every other one is closed."""
    customer = account.stripe_customer_id
    had_one = has_ever_subscribed(gateway.mirror.subscriptions_of(customer))
    trial_days = 0 if had_one else plan.trial_days
    wanted = f"{price}:{trial_days}"
    found = gateway.stripe_api.expire_checkouts(
        customer=customer, wanted=wanted, success_url=success_url
    )
    # Once more: a page that was open before may have been paid until it was closed.
    if found.newest and sync_account(account=account).stripe_subscription_id:
        raise AlreadySubscribed
    return found.page or gateway.stripe_api.create_checkout(
        customer=customer,
        price=price,
        trial_days=trial_days,
        success_url=success_url,
        cancel_url=cancel_url,
        wanted=wanted,
        newest=found.newest,
    )


def open_portal(*, user: User, site: str) -> str:
    """The address of the page at Stripe where this person changes card or plan, or cancels.

    Raises NoStripeCustomer, PaymentUnavailable.
    """
    require_billing()
    account = BillingAccount.objects.filter(user=user).exclude(stripe_customer_id="").first()
    if account is None:
        raise NoStripeCustomer
    return gateway.stripe_api.open_portal(
        customer=account.stripe_customer_id,
        return_url=f"{site}/billing",
        configuration=gateway.provisioning.portal_configuration(),
    )


def refresh_subscription(*, user: User) -> BillingAccount | None:
    """The person's account is as Stripe has it now: for the page that a payment leads back to.

    None for somebody whom Stripe does not know. Raises PaymentUnavailable.
    """
    require_billing()
    account = BillingAccount.objects.filter(user=user).exclude(stripe_customer_id="").first()
    return sync_account(account=account) if account else None


def list_invoices(*, user: User) -> list[PaidInvoice]:
    """The person's last invoices, newest first, from the mirror: Stripe is not asked."""
    require_billing()
    account = BillingAccount.objects.filter(user=user).exclude(stripe_customer_id="").first()
    rows = gateway.mirror.invoices_of(account.stripe_customer_id) if account else []
    return [
        PaidInvoice(
            number=row.get("number") or "",
            status=row.get("status") or "",
            total=from_minor_units(row["total"], row["currency"]),
            currency=row["currency"].upper(),
            created=from_timestamp(row.get("created")),
            url=row.get("hosted_invoice_url") or "",
            pdf=row.get("invoice_pdf") or "",
        )
        for row in rows
        if row.get("status") != "draft"
    ]


def _paid_plan(slug: str) -> Plan:
    # Compared here: what a form sends may be no text for a database.
    paid = {plan.slug: plan for plan in offered_plans() if plan.price_lookup_key}
    if slug not in paid:
        raise Invalid.field("plan", f"Choose one of: {', '.join(paid)}.")
    return paid[slug]


def _with_customer(user: User) -> BillingAccount:
    """The person's account, with a customer at Stripe. Raises PaymentUnavailable."""
    account = BillingAccount.objects.get_or_create(user=user)[0]
    if account.stripe_customer_id:
        return account
    # Two requests at once see the same number and get the same customer; one that comes after a
    # customer was deleted at Stripe sees a higher one, and gets a new customer.
    sync = AccountSync.objects.filter(account=account).first()
    made = gateway.stripe_api.create_customer(
        user_id=user.pk, email=user.email, attempt=sync.asked if sync else 0
    )
    with transaction.atomic():
        # The account's row first, as everywhere: two requests would wait for each other otherwise.
        locked = BillingAccount.objects.select_for_update().filter(pk=account.pk).first()
        # Also when the account has gone meanwhile: so the customer is found, and deleted.
        gateway.mirror.save_customer(made)
        if locked is not None and not locked.stripe_customer_id:
            locked.stripe_customer_id = made
            locked.save(update_fields=["stripe_customer_id", "updated_at"])
    if locked is None:
        raise NotFound("account")
    return locked
