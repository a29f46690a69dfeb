"""Sync billing accounts with Stripe: fetch, mirror, and derive each account from the mirror.

Neither an event nor the return from a checkout grants anything. Both only trigger a fetch; its
result is stored in the order of the requests, and the account is derived from the stored rows alone
(`billing.stripe.subscription_state`), with the same result however often and in whatever order
events arrive.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import F, Q, QuerySet

from billing.errors import NoStripeCustomer, NotFoundAtStripe, PaymentUnavailable, require_billing
from billing.models import AccountSync, BillingAccount, Plan
from billing.stripe import gateway
from billing.stripe.subscription_state import SubscriptionState, subscription_state
from core.audit import record
from core.clock import database_now
from core.emails import send_email
from core.security.scopes import Principal

logger = logging.getLogger(__name__)
EVENT_RETENTION = timedelta(days=30)
RESYNC_INTERVAL = timedelta(hours=24)
"""Every account with a customer is fetched again after this time, with or without webhooks."""
RESYNC_SECONDS, PAUSE_SECONDS = 10, 300
"""The worker syncs one account every ten seconds at most, and pauses while Stripe is down."""
TRACKED_FIELDS = (
    *("plan_id", "status", "cancel_at_period_end", "stripe_subscription_id"),
    "duplicate_subscription_id",
)


@dataclass
class ResyncResult:
    """Counts of one `resync`."""

    read: int = 0
    changed: int = 0
    failed: int = 0
    unknown: int = 0
    forgotten: int = 0


def receive_event(*, body: bytes, signature: str) -> bool:
    """Sync the account that a webhook event is about; False when there was nothing to do.

    Raises InvalidWebhookSignature, and PaymentUnavailable while Stripe is down: it sends the event
    again.
    """
    require_billing()
    secrets = gateway.mirror.secrets()
    if settings.STRIPE_WEBHOOK_SECRET:
        secrets.append(settings.STRIPE_WEBHOOK_SECRET)
    event = gateway.stripe_api.read_event(body, signature, secrets)
    if not event.customer or gateway.mirror.has_event(event.id):
        return False
    account = BillingAccount.objects.filter(stripe_customer_id=event.customer).first()
    if account is None:
        return False
    sync_account(account=account)
    gateway.mirror.save_event(event)
    return True


def sync_account(*, account: BillingAccount) -> BillingAccount:
    """Fetch the account's customer from Stripe and apply it. Raises PaymentUnavailable."""
    number, is_new = _next_request_number(account), False
    state = gateway.stripe_api.fetch_customer(account.stripe_customer_id)
    with transaction.atomic():
        # Every sync locks the account first, so that concurrent answers are applied in turn.
        locked = BillingAccount.objects.select_for_update().filter(pk=account.pk).first()
        if locked is None:
            return account
        newer = AccountSync.objects.filter(account=locked, last_applied__lt=number)
        if locked.stripe_customer_id == account.stripe_customer_id and newer.update(
            last_applied=number
        ):
            gateway.mirror.save_customer_state(locked.stripe_customer_id, state)
            if state.is_deleted:
                locked.stripe_customer_id = ""
            before = locked.duplicate_subscription_id
            _apply_mirror(locked)
            is_new = locked.duplicate_subscription_id not in {"", before}
    if is_new:
        _report_duplicate_subscription(locked)
    return locked


def _report_duplicate_subscription(account: BillingAccount) -> None:
    """Log and e-mail that a user pays twice; people decide which one to cancel and refund."""
    logger.error("Account %s pays two subscriptions at Stripe", account.pk)
    send_email("two_subscriptions", to=account.user.email, site=settings.PUBLIC_URL)


def resync_account(*, account: BillingAccount, by: Principal) -> BillingAccount:
    """Sync an account on behalf of staff. Raises NoStripeCustomer, PaymentUnavailable."""
    require_billing()
    if not account.stripe_customer_id:
        raise NoStripeCustomer
    found = sync_account(account=account)
    record(action="resync_account", by=by, subject=found, owner=found.user_id)
    return found


def resync(*, limit: int | None = None, stale: timedelta = timedelta(0)) -> ResyncResult:
    """Sync the accounts not synced for `stale`, longest ago first, at most `limit` of them.

    Customers of deleted accounts are deleted at Stripe, which ends their subscriptions. Stops at
    the first failed request; the next run continues.
    """
    require_billing()
    done = ResyncResult()
    now = database_now()
    gateway.mirror.delete_old_events(before=now - EVENT_RETENTION)
    try:
        for customer in _orphaned_customers(limit=limit):
            _delete_orphaned_customer(customer, done)
        for account in list(_stale(now - stale)[:limit]):
            _resync_account(account, done)
    except PaymentUnavailable:
        done.failed += 1
    return done


def _resync_account(account: BillingAccount, done: ResyncResult) -> None:
    before = _tracked_values(account)
    try:
        done.changed += _tracked_values(sync_account(account=account)) != before
        done.read += 1
    except NotFoundAtStripe:
        # A customer of another key must not block the others.
        done.unknown += 1


def is_resync_due() -> bool:
    """True, at most every RESYNC_SECONDS, while an account or an orphaned customer is due."""
    if not settings.BILLING_ENABLED:
        return False
    due = _stale(database_now() - RESYNC_INTERVAL).exists() or _orphaned_customers(limit=1)
    return bool(due) and cache.add("billing-resync", 1, RESYNC_SECONDS)


def resync_stale_account() -> None:
    """Sync the account that is due, as a task of the worker; pause while Stripe is down."""
    if settings.BILLING_ENABLED and resync(limit=1, stale=RESYNC_INTERVAL).failed:
        cache.set("billing-resync", 1, PAUSE_SECONDS)


def _delete_orphaned_customer(customer: str, done: ResyncResult) -> None:
    """Delete the Stripe customer of a deleted account, which ends its subscriptions."""
    try:
        gateway.stripe_api.delete_customer(customer)
    except NotFoundAtStripe:
        gateway.mirror.mark_customer_unknown(customer)
        done.unknown += 1
        return
    with transaction.atomic():
        gateway.mirror.delete_customer_rows(customer)
    done.forgotten += 1


def _orphaned_customers(*, limit: int | None) -> Sequence[str]:
    """Customers without an account; with `limit`, without those unknown to the key."""
    named = BillingAccount.objects.exclude(stripe_customer_id="").values("stripe_customer_id")
    return gateway.mirror.orphaned_customers(named, limit=limit)


def _next_request_number(account: BillingAccount) -> int:
    """The number of a request to Stripe that begins after this returns."""
    with transaction.atomic():
        BillingAccount.objects.select_for_update().filter(pk=account.pk).first()
        sync = AccountSync.objects.get_or_create(account=account)[0]
        sync.last_requested += 1
        sync.save(update_fields=["last_requested", "updated_at"])
    return sync.last_requested


def _apply_mirror(account: BillingAccount) -> None:
    """Derive the account from the mirrored rows; an audit entry if it changes."""
    before = _tracked_values(account)
    state = _subscription_state(account)
    account.synced_at = now = database_now()
    if not state.subscription and _is_complimentary(account):
        account.save()
        return
    plan = _paid_plan(state)
    account.assign_plan(plan, now=now)
    account.status = state.status
    account.stripe_subscription_id = state.subscription
    account.duplicate_subscription_id = state.duplicate_subscription
    account.period_start, account.period_end = state.period_start, state.period_end
    account.cancel_at_period_end = state.cancel_at_period_end
    account.grace_until, account.trial_end = state.grace_until, state.trial_end
    account.save()
    if _tracked_values(account) != before:
        record(
            action="change_subscription",
            by=None,
            subject=account,
            owner=account.user_id,
            plan=plan.slug if plan else None,
            status=account.status,
            cancel_at_period_end=account.cancel_at_period_end,
            second=bool(account.duplicate_subscription_id),
        )


def _is_complimentary(account: BillingAccount) -> bool:
    """True for a plan granted by staff: it stays until there is a subscription."""
    return account.status in {"active", "trialing"} and not account.stripe_subscription_id


def _subscription_state(account: BillingAccount) -> SubscriptionState:
    customer = account.stripe_customer_id
    if not customer:
        return SubscriptionState("canceled" if account.status != "free" else "free")
    return subscription_state(
        gateway.mirror.subscriptions_of(customer),
        gateway.mirror.invoices_of(customer),
        grace=timedelta(days=settings.BILLING_GRACE_DAYS),
    )


def _paid_plan(state: SubscriptionState) -> Plan | None:
    """The subscribed plan, by the price's lookup key or, for an older price, by its product."""
    if not state.subscription:
        return None
    slug = state.product.removeprefix("ace_")
    named = Plan.objects.filter(Q(price_lookup_key=state.lookup_key) & ~Q(price_lookup_key=""))
    plan = named.first() or Plan.objects.filter(slug=slug).first()
    if plan is None:
        logger.error("No plan has the price of subscription %s", state.subscription)
    return plan


def _stale(before: datetime) -> QuerySet[BillingAccount]:
    rows = BillingAccount.objects.exclude(stripe_customer_id="")
    # By the last request, not the last answer: one that always fails must not come first forever.
    old = rows.filter(Q(sync=None) | Q(sync__updated_at__lt=before))
    return old.order_by(F("sync__updated_at").asc(nulls_first=True), "pk")


def _tracked_values(account: BillingAccount) -> tuple[object, ...]:
    return tuple(getattr(account, name) for name in TRACKED_FIELDS)
