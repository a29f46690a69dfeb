"""Overage: calls beyond a plan, up to the owner's monthly budget, charged after the month.

Stripe hears of each cent once, whatever dies: the intended total is committed first, then the
difference is sent under an identifier made of both totals, then it is noted as sent. A report found
unfinished is sent again under the same identifier, which Stripe takes once.
"""

import logging
from datetime import datetime, timedelta
from decimal import Decimal

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import F, Q

from billing.errors import PaymentUnavailable, require_billing
from billing.models import BillingAccount, QuotaPeriod, QuotaResource
from billing.money import OVERAGE
from billing.plans.billing_periods import LONGEST_MONTH
from billing.plans.entitlements import (
    SHORTEST_MONTH,
    Entitlement,
    entitlement_for,
    included_amount,
    overage_budget,
)
from billing.stripe import gateway
from billing.stripe.subscription_state import metered_item
from billing.stripe.sync import PAUSE_SECONDS, sync_account
from core.audit import record
from core.clock import database_now
from core.errors import Conflict
from core.security.scopes import Principal

logger = logging.getLogger(__name__)
INTERVAL = 55
"""Seconds between two rounds of reports."""
DRAFT = timedelta(minutes=30)
"""Stripe's invoice stays a draft for an hour, in which usage still counts for its period."""
IDENTIFIER_KNOWN, LAST_REPORT = timedelta(hours=23), timedelta(days=60)
"""How long Stripe surely knows an identifier; how old a month may be that is reported."""


def overage_problem(entitlement: Entitlement) -> str:
    """What keeps the account from overage, for its owner; empty if nothing does."""
    plan, account = entitlement.plan, entitlement.account
    included = included_amount(entitlement, QuotaResource.USD)
    if included is None or not plan.overage_price:
        return f"The {plan.name} plan has no overage."
    start, end = account.period_start, account.period_end
    is_monthly = start and end and SHORTEST_MONTH <= end - start <= LONGEST_MONTH
    if account.status != account.Status.ACTIVE or account.plan_id != plan.pk or not is_monthly:
        return "Overage needs a plan that is paid monthly, without a trial or an unpaid invoice."
    if (overage_budget(entitlement.limits) or 0) > included:
        return ""
    return f"Overage needs a monthly budget of more than {included:,} US$ that pauses evolutions."


def set_overage(*, account: BillingAccount, on: bool, by: Principal) -> None:
    """Let the account's calls go on beyond its plan, or end that at once.

    What was used is charged with its period. Raises Conflict (`overage_unavailable`), and
    PaymentUnavailable when it begins; to end it Stripe is not asked.
    """
    require_billing()
    subscription, price = _add_item(account) if on else ("", "")
    chosen = {"overage_subscription_id": subscription, "overage_price": price}
    with transaction.atomic():
        rows = BillingAccount.objects.filter(pk=account.pk).exclude(overage_price="")
        # The worker syncs the account soon, which removes an item that is not needed.
        if rows.update(**chosen, requested_at=None):
            action = "allow_overage" if on else "end_overage"
            record(action=action, by=by, subject=account, owner=account.user_id, price=price)


def _add_item(account: BillingAccount) -> tuple[str, str]:
    """Ensure the subscription's metered item; the subscription, and the price in words."""
    entitlement = entitlement_for(account.user_id)
    problem = overage_problem(entitlement) if entitlement else ""
    if problem or entitlement is None:
        raise Conflict(problem, code="overage_unavailable")
    # First, for a sync removes an item that nobody chose. Then ask Stripe whether it is there.
    rows = BillingAccount.objects.filter(pk=account.pk)
    rows.update(overage_price=entitlement.plan.overage_price)
    account = sync_account(account=entitlement.account)
    subscription = account.stripe_subscription_id
    known = gateway.mirror.subscriptions_of(account.stripe_customer_id)
    item, key = metered_item(known, subscription), entitlement.plan.lookup_keys[OVERAGE]
    price = item["price"] if item else gateway.stripe_api.find_price(key)
    if price is None:
        raise Conflict("Overage is not for sale now.", code="overage_unavailable")
    if item is None:
        gateway.stripe_api.add_item(subscription, price["id"], attempt=account.last_requested)
    return subscription, str(gateway.setup.price_amount(price))


def report_overage() -> int:
    """Tell Stripe what was used beyond plans, once a minute over all hosts; how many reports."""
    if not settings.BILLING_ENABLED or not cache.add("billing-overage", 1, INTERVAL):
        return 0
    now, sent = database_now(), 0
    rows = QuotaPeriod.objects.filter(overage_from__isnull=False, end__gt=now - LAST_REPORT)
    rows = rows.exclude(user__billing_account__stripe_customer_id="")
    more = F("overage_from") + (F("overage_sent") + 1) / Decimal(100)
    due = rows.filter(Q(overage_due__gt=F("overage_sent")) | Q(usd_used__gte=more))
    try:
        # In any order, so that one which Stripe refuses does not hold up the others for ever.
        for period in due.select_related("user__billing_account").order_by("?"):
            sent += _report(period, now)
    except PaymentUnavailable:
        cache.set("billing-overage", 1, PAUSE_SECONDS)
    return sent


def _report(period: QuotaPeriod, now: datetime) -> bool:
    """Send what is due of the period; False if nothing is."""
    intended = _intend(period, now)
    if intended is None:
        return False
    due, sent = intended.overage_due or 0, intended.overage_sent or 0
    if now - (intended.overage_at or now) < IDENTIFIER_KNOWN:
        gateway.stripe_api.report_usage(
            period.user.billing_account.stripe_customer_id,
            due - sent,
            identifier=f"{period.pk}:{sent}:{due}",
            # In its period, as long as the invoice of it can change.
            at=min(now, period.end - timedelta(seconds=1)) if now < period.end + DRAFT else now,
        )
    else:
        # Stripe may have counted it, and would again: rather a minute's usage is lost.
        logger.error("Not charged for lack of Stripe's answer: %s US cents", due - sent)
    rows = QuotaPeriod.objects.filter(pk=period.pk, overage_due=due, overage_sent=sent)
    return bool(rows.update(overage_sent=due))


def _intend(period: QuotaPeriod, now: datetime) -> QuotaPeriod | None:
    """The period with the total to report, an unfinished report's or a new one; None: none."""
    with transaction.atomic():
        rows = QuotaPeriod.objects.select_for_update(of=("self",), no_key=True)
        row = rows.filter(pk=period.pk).first()
        if row is None or row.overage_due != row.overage_sent:
            return row
        cents = int(row.overage_usd * 100)
        if cents <= (row.overage_sent or 0):
            return None
        row.overage_due, row.overage_at = cents, now
        row.save(update_fields=["overage_due", "overage_at", "updated_at"])
    return row
