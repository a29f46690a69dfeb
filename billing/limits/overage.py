"""Overage: calls beyond a plan, up to the owner's monthly budget, charged each month.

It is a metered subscription of its own at Stripe, which says whether it is on. Stripe hears of each
cent once, whatever dies: a charge is committed first and sent under its id, which Stripe takes
once.
"""

import logging
from datetime import datetime, timedelta
from decimal import Decimal

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import F

from billing.errors import PaymentUnavailable, require_billing
from billing.limits.quota import charge_overage
from billing.models import BillingAccount, OverageCharge, QuotaPeriod
from billing.money import OVERAGE
from billing.plans.entitlements import entitlement_for, overage_problem
from billing.stripe import gateway
from billing.stripe.subscription_state import overage_subscription
from billing.stripe.subscriptions import checkout_lock
from billing.stripe.sync import PAUSE_SECONDS, sync_account
from core.audit import record
from core.clock import database_now
from core.errors import Conflict
from core.security.scopes import Principal

logger = logging.getLogger(__name__)
INTERVAL = 55
"""Seconds between two rounds of reports."""
DRAFT = timedelta(minutes=30)
"""Stripe's invoice stays a draft for an hour, in which usage still counts for its month."""
IDENTIFIER_KNOWN, LAST_REPORT = timedelta(hours=23), timedelta(days=60)
"""How long Stripe surely knows an identifier; how long what was used is charged, and kept."""


def set_overage(*, account: BillingAccount, on: bool, by: Principal) -> None:
    """Let the account's calls go on beyond its plan, or end that at once.

    What was used is on the month's invoice. Raises Conflict (`overage_unavailable`,
    `checkout_busy`), PaymentUnavailable: without Stripe, a smaller budget stops calls.
    """
    require_billing()
    with checkout_lock(account.user):
        if account.stripe_customer_id:
            account = sync_account(account=account)
        before = account.overage_subscription_id
        if problem := _change(account, on=on):
            raise Conflict(problem, code="overage_unavailable")
        if account.stripe_customer_id:
            account = sync_account(account=account, with_invoices=False)
    if before != account.overage_subscription_id:
        action, price = "allow_overage" if on else "end_overage", account.overage_price
        record(action=action, by=by, subject=account, owner=account.user_id, price=price)


def _change(account: BillingAccount, *, on: bool) -> str:
    """Begin the metered subscription, or let it renew or end after its month; or why it cannot."""
    entitlement = entitlement_for(account.user_id)
    if on and entitlement and (problem := overage_problem(entitlement)):
        return problem
    known = gateway.mirror.subscriptions_of(account.stripe_customer_id)
    if found := overage_subscription(known):
        if on and found["status"] != "active":
            return "The last overage invoice is unpaid."
        gateway.stripe_api.change_subscription(found["id"], {"cancel_at_period_end": not on})
    elif on and account.plan:
        price = gateway.stripe_api.find_price(account.plan.lookup_keys[OVERAGE])
        if price is None:
            return "Overage is not available right now."
        paid = next(row for row in known if row["id"] == account.stripe_subscription_id)
        gateway.stripe_api.begin_overage(price["id"], like=paid, known=len(known))
    return ""


def report_overage() -> int:
    """Tell Stripe what was used beyond plans, once a minute over all hosts; how many reports."""
    if not settings.BILLING_ENABLED or not cache.add("billing-overage", 1, INTERVAL):
        return 0
    now, sent = database_now(), 0
    OverageCharge.objects.filter(sent_at__lt=now - LAST_REPORT).delete()
    rows = QuotaPeriod.objects.filter(overage_from__isnull=False, end__gt=now - LAST_REPORT)
    more = F("overage_from") + (F("overage_sent") + 1) / Decimal(100)
    for pk in rows.filter(usd_used__gte=more).values_list("pk", flat=True):
        with transaction.atomic():
            charge_overage(pk)
    try:
        # In any order, so that one which Stripe refuses does not hold up the others for ever.
        for charge in OverageCharge.objects.filter(sent_at=None).order_by("?"):
            _send(charge, now)
            sent += 1
    except PaymentUnavailable:
        cache.set("billing-overage", 1, PAUSE_SECONDS)
    return sent


def _send(charge: OverageCharge, now: datetime) -> None:
    rows = OverageCharge.objects.filter(pk=charge.pk)
    if now - (charge.tried_at or now) < IDENTIFIER_KNOWN:
        rows.filter(tried_at=None).update(tried_at=now)
        # In its month, as long as the invoice of it can change.
        at = charge.created_at if now - charge.created_at < DRAFT else now
        gateway.stripe_api.report_usage(
            charge.customer_id, charge.cents, identifier=str(charge.pk), at=at
        )
    else:
        # Stripe may have counted it, and would again: rather a minute's usage is lost.
        logger.error("Not charged for lack of Stripe's answer: %s US cents", charge.cents)
    rows.update(sent_at=now)
