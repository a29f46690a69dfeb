"""Sync billing accounts with Stripe: fetch, mirror, and derive each account from the mirror.

Neither an event nor the return from a checkout grants anything. Both only trigger a fetch; its
result is stored in the order of the requests, and the account is derived from the stored rows alone
(`billing.stripe.subscription_state`), with the same result however often and in whatever order
events arrive.
"""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from billing.errors import (
    InvalidWebhookSignature,
    NoStripeCustomer,
    NotFoundAtStripe,
    PaymentUnavailable,
    require_billing,
)
from billing.models import BillingAccount, OverageCharge, Plan, StripeEvent, TrialMark
from billing.models.accounts import keyed_digest
from billing.stripe import gateway
from billing.stripe.subscription_state import (
    SubscriptionState,
    overage_state,
    overage_subscription,
    subscription_state,
)
from core.audit import record
from core.clock import database_now
from core.emails import send_email
from core.errors import Conflict
from core.security.scopes import Principal

Data = dict[str, Any]
logger = logging.getLogger(__name__)
EVENT_RETENTION = timedelta(days=30)
METER_DELAY = timedelta(minutes=10)
"""How long Stripe may take to count usage that it was told of."""
RESYNC_INTERVAL = timedelta(hours=24)
"""Every account with a customer is fetched again after this time, with or without webhooks."""
RESYNC_SECONDS, PAUSE_SECONDS = 10, 300
"""The worker syncs one account every ten seconds at most, and pauses while Stripe is down."""
TRACKED_FIELDS = (
    *("plan_id", "status", "cancel_at_period_end", "stripe_subscription_id"),
    *("duplicate_subscription_id", "overage_subscription_id"),
)
UNLINKED: dict[str, Any] = SubscriptionState("free").stored | {
    **overage_state([]),
    "plan": None,
    "stripe_customer_id": "",
}
"""The fields of an account without a customer."""
EMAILS = {
    "customer.subscription.trial_will_end": "trial_ends",
    "invoice.payment_failed": "payment_failed",
}
"""What people are told after these events, once the account is synced."""
MONEY_BACK = {"charge.dispute.created", "charge.refunded"}


def receive_event(*, body: bytes, signature: str) -> bool:
    """Sync the account that a webhook event is about; False when there was nothing to do.

    Raises InvalidWebhookSignature, and PaymentUnavailable while Stripe is down: it sends the event
    again.
    """
    require_billing()
    results = StripeEvent.Result
    event = _read_event(body, signature)
    done = StripeEvent.objects.filter(event_id=event.id, result__in=("processed", "ignored"))
    if done.exists():
        return False
    fields = {"type": event.type[:100], "customer_id": event.customer}
    if event.type in MONEY_BACK:
        logger.error("Stripe: %s, event %s, customer %s", event.type, event.id, event.customer)
    linked = BillingAccount.objects.exclude(stripe_customer_id="")
    account = linked.filter(stripe_customer_id=event.customer).first()
    if account is None:
        _store_event(event.id, **fields, result=results.IGNORED)
        return False
    try:
        account = sync_account(account=account, with_invoices=event.type.startswith("invoice."))
    except NotFoundAtStripe:
        # Sending it again would not help: it is a customer of another key or mode.
        _store_event(event.id, **fields, result=results.IGNORED, detail="unknown to the key")
        return False
    except PaymentUnavailable:
        _store_event(event.id, **fields, result=results.FAILED, detail="Stripe did not answer")
        raise
    if _store_event(event.id, **fields, result=results.PROCESSED):
        _tell_user(account, event.type)
    return True


def _read_event(body: bytes, signature: str) -> Any:
    """The event, if it is signed; rejected ones are counted. Raises InvalidWebhookSignature."""
    secrets = gateway.mirror.secrets()
    if settings.STRIPE_WEBHOOK_SECRET:
        secrets.append(settings.STRIPE_WEBHOOK_SECRET)
    try:
        return gateway.stripe_api.read_event(body, signature, secrets)
    except InvalidWebhookSignature:
        hour = f"rejected-{database_now():%Y-%m-%d-%H}"
        _store_event(hour, result=StripeEvent.Result.REJECTED)
        raise


def _store_event(event_id: str, **fields: str) -> bool:
    """Record what became of an event; True unless another request has processed it meanwhile."""
    row, is_new = StripeEvent.objects.get_or_create(event_id=event_id, defaults=fields)
    if is_new:
        return True
    rows = StripeEvent.objects.filter(pk=row.pk).exclude(result=StripeEvent.Result.PROCESSED)
    return bool(rows.update(**fields, attempts=F("attempts") + 1, updated_at=database_now()))


def _tell_user(account: BillingAccount, event: str) -> None:
    """E-mail what the event means, if the account still says so."""
    is_due = {
        "trial_ends": account.status == BillingAccount.Status.TRIALING,
        "payment_failed": account.status == BillingAccount.Status.PAST_DUE
        or (account.overage_price and not account.overage_subscription_id),
    }
    email = EMAILS.get(event, "")
    if is_due.get(email) and not (email == "trial_ends" and account.cancel_at_period_end):
        until = account.trial_end if email == "trial_ends" else account.grace_until
        send_email(
            email,
            to=account.user.email,
            site=settings.PUBLIC_URL,
            plan=account.plan.name if account.plan else "",
            until=f"{until:%-d %B %Y}" if until else "",
        )


def sync_account(*, account: BillingAccount, with_invoices: bool = True) -> BillingAccount:
    """Fetch the account's customer from Stripe and apply it. Raises PaymentUnavailable."""
    number, is_new, second_trial = _next_request_number(account), False, ""
    customer = account.stripe_customer_id
    state = gateway.stripe_api.fetch_customer(customer, with_invoices=with_invoices)
    with transaction.atomic():
        # Every sync locks the account first, so that concurrent answers are applied in turn.
        rows = BillingAccount.objects.select_for_update(of=("self",)).select_related("user")
        locked = rows.filter(pk=account.pk).first()
        if locked is None:
            return account
        if locked.stripe_customer_id == customer and locked.last_applied < number:
            locked.last_applied = number
            gateway.mirror.save_customer_state(customer, state)
            if state.is_deleted:
                locked.stripe_customer_id = ""
            before = locked.duplicate_subscription_id
            _apply_mirror(locked)
            is_new = locked.duplicate_subscription_id not in {"", before}
            second_trial = _mark_trial(locked, state.cards)
    if is_new:
        _report_duplicate_subscription(locked)
    overage = overage_subscription(state.subscriptions)
    if overage and (changes := _overage_changes(locked, overage, state.subscriptions)):
        gateway.stripe_api.change_subscription(overage["id"], changes)
    if second_trial:
        gateway.stripe_api.change_subscription(second_trial, {"trial_end": "now"})
    if state.email and state.email.lower() != locked.user.email.lower():
        gateway.stripe_api.change_email(customer, locked.user.email)
    return locked


def _overage_changes(
    account: BillingAccount, overage: Mapping[str, Any], subscriptions: list[Data]
) -> dict[str, Any]:
    """How overage follows the plan: it ends with it, with a last invoice, and is paid as it is."""
    plan = next((r for r in subscriptions if r["id"] == account.stripe_subscription_id), None)
    if plan is None:
        return {"cancel_at_period_end": True} if account.overage_subscription_id else {}
    method = plan.get("default_payment_method")
    is_same = method in {None, "", overage.get("default_payment_method")}
    return {} if is_same else {"default_payment_method": method}


def _mark_trial(account: BillingAccount, cards: dict[str, str]) -> str:
    """Remember address and card of a trial; the subscription's id if the card had one before."""
    subscription = account.stripe_subscription_id
    if account.status != BillingAccount.Status.TRIALING or not subscription:
        return ""
    card = cards.get(subscription, "")
    for text in filter(None, (account.user.email, card)):
        TrialMark.objects.get_or_create(
            digest=keyed_digest(text), defaults={"subscription_id": subscription}
        )
    mark = TrialMark.objects.filter(digest=keyed_digest(card)).first() if card else None
    return "" if mark is None or mark.subscription_id == subscription else subscription


def _report_duplicate_subscription(account: BillingAccount) -> None:
    """Log and e-mail that a user pays twice; people decide which one to cancel and refund."""
    logger.error("Account %s pays two subscriptions in Stripe", account.pk)
    send_email("two_subscriptions", to=account.user.email, site=settings.PUBLIC_URL)


def resync_account(*, account: BillingAccount, by: Principal) -> BillingAccount:
    """Sync an account on behalf of staff. Raises NoStripeCustomer, PaymentUnavailable."""
    require_billing()
    if not account.stripe_customer_id:
        raise NoStripeCustomer
    found = sync_account(account=account)
    record(action="resync_account", by=by, subject=found, owner=found.user_id)
    return found


def extend_trial(*, account: BillingAccount, days: int, by: Principal) -> BillingAccount:
    """Extend the account's trial at Stripe. Raises Conflict (`no_trial`), PaymentUnavailable."""
    require_billing()
    if account.status != BillingAccount.Status.TRIALING or account.trial_end is None:
        raise Conflict("This user is not in a trial.", code="no_trial")
    until = account.trial_end + timedelta(days=days)
    changes = {"trial_end": int(until.timestamp())}
    gateway.stripe_api.change_subscription(account.stripe_subscription_id, changes)
    record(action="extend_trial", by=by, subject=account, owner=account.user_id, days=days)
    return sync_account(account=account)


def unlink_customer(*, account: BillingAccount, by: Principal) -> BillingAccount:
    """Forget a customer that the key does not know; their plan ends here, nothing at Stripe.

    Raises NoStripeCustomer, PaymentUnavailable, Conflict (`known`) for a customer of this key.
    """
    require_billing()
    customer = account.stripe_customer_id
    if not customer:
        raise NoStripeCustomer
    try:
        gateway.stripe_api.fetch_customer(customer, with_invoices=False)
    except NotFoundAtStripe:
        with transaction.atomic():
            rows = BillingAccount.objects.filter(pk=account.pk, stripe_customer_id=customer)
            rows.update(**UNLINKED, updated_at=database_now())
            gateway.mirror.delete_customer_rows(customer)
            record(action="unlink_customer", by=by, subject=account, owner=account.user_id)
        account.refresh_from_db()
        return account
    raise Conflict("Stripe knows this customer with the present key.", code="known")


def resync_stale_account() -> None:
    """Sync the account that is due, at most every RESYNC_SECONDS; pause while Stripe is down.

    A customer of a deleted account is deleted at Stripe, which ends its subscriptions.
    """
    if not settings.BILLING_ENABLED or not cache.add("billing-resync", 1, RESYNC_SECONDS):
        return
    now = database_now()
    stale = now - RESYNC_INTERVAL
    StripeEvent.objects.filter(created_at__lt=now - EVENT_RETENTION).delete()
    named = BillingAccount.objects.exclude(stripe_customer_id="").values("stripe_customer_id")
    # Those whose last usage Stripe has not heard of, or perhaps not counted yet.
    unheard = OverageCharge.objects.filter(Q(sent_at=None) | Q(sent_at__gt=now - METER_DELAY))
    unbilled, account = unheard.values("customer_id"), _stale(stale).first()
    try:
        if customer := gateway.mirror.orphaned_customer(named, unbilled, stale=stale):
            _delete_orphaned_customer(customer)
        if account is not None:
            sync_account(account=account)
    except NotFoundAtStripe:
        # A customer of another key must not block the others.
        of = account.pk if account else ""
        logger.error("Stripe does not know the customer of account %s with this key", of)
    except PaymentUnavailable:
        cache.set("billing-resync", 1, PAUSE_SECONDS)


def _delete_orphaned_customer(customer: str) -> None:
    """Delete the Stripe customer of a deleted account, which ends its subscriptions.

    What was used beyond the plan is charged first: Stripe would forget it.
    """
    overage = overage_subscription(gateway.mirror.subscriptions_of(customer))
    try:
        if overage is not None:
            gateway.stripe_api.settle_overage(overage["id"])
        gateway.stripe_api.delete_customer(customer)
    except NotFoundAtStripe:
        gateway.mirror.mark_customer_unknown(customer)
        return
    with transaction.atomic():
        gateway.mirror.delete_customer_rows(customer)


def _next_request_number(account: BillingAccount) -> int:
    """The number of a request to Stripe that begins after this returns."""
    rows = BillingAccount.objects.filter(pk=account.pk)
    with transaction.atomic():
        rows.update(last_requested=F("last_requested") + 1, requested_at=timezone.now())
        return rows.values_list("last_requested", flat=True).first() or 0


def _apply_mirror(account: BillingAccount) -> None:
    """Derive the account from the mirrored rows; an audit entry if it changes."""
    before = _tracked_values(account)
    plans = list(Plan.objects.order_by("-position"))
    state = _subscription_state(account, plans)
    plan = next((plan for plan in plans if state.price and plan.is_sold_as(state.price)), None)
    if state.stripe_subscription_id and plan is None:
        logger.error("No plan sells the subscription %s", state.stripe_subscription_id)
    account.synced_at, account.plan = database_now(), plan
    known = gateway.mirror.subscriptions_of(account.stripe_customer_id)
    for name, value in (state.stored | overage_state(known)).items():
        setattr(account, name, value)
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


def _subscription_state(account: BillingAccount, plans: list[Plan]) -> SubscriptionState:
    customer = account.stripe_customer_id
    if not customer:
        return SubscriptionState("canceled" if account.status != "free" else "free")
    return subscription_state(
        gateway.mirror.subscriptions_of(customer),
        gateway.mirror.invoices_of(customer),
        grace=timedelta(days=settings.BILLING_GRACE_DAYS),
        is_plan=lambda price: any(plan.is_sold_as(price) for plan in plans),
    )


def _stale(before: datetime) -> QuerySet[BillingAccount]:
    rows = BillingAccount.objects.exclude(stripe_customer_id="")
    # By the last request, not the last answer: one that always fails must not come first forever.
    # A changed user may have a new address, which Stripe has to know.
    changed = Q(user__updated_at__gt=F("requested_at"))
    old = rows.filter(Q(requested_at=None) | Q(requested_at__lt=before) | changed)
    return old.order_by(F("requested_at").asc(nulls_first=True), "pk")


def _tracked_values(account: BillingAccount) -> tuple[object, ...]:
    return tuple(getattr(account, name) for name in TRACKED_FIELDS)
