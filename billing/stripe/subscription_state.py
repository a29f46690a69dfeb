"""Derive what a customer's subscriptions and invoices at Stripe entitle them to. Pure.

The same rows give the same state, in whatever order events arrived.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from billing.money import is_metered, price_amount

Data = Mapping[str, Any]
# Best first: of two subscriptions the better one counts.
RANK = ("active", "trialing", "past_due", "unpaid")
STATUS = {"active": "active", "trialing": "trialing", "past_due": "past_due", "unpaid": "past_due"}
UNSETTLED = {"paused", "incomplete"}
"""Grants nothing, but can begin to be charged: no second one is sold beside it."""


@dataclass(frozen=True)
class SubscriptionState:
    """The derived state, named as in BillingAccount, which stores it.

    `price` is that of the plan, or of the first item without one.
    """

    status: str
    stripe_subscription_id: str = ""
    price: Data | None = None
    period_start: datetime | None = None
    period_end: datetime | None = None
    cancel_at_period_end: bool = False
    grace_until: datetime | None = None
    trial_end: datetime | None = None
    duplicate_subscription_id: str = ""
    """Another subscription that is paid as well."""

    @property
    def stored(self) -> dict[str, Any]:
        """The fields of the account, but for its plan."""
        return {name: value for name, value in vars(self).items() if name != "price"}


def subscription_state(
    subscriptions: Iterable[Data],
    invoices: Iterable[Data],
    *,
    grace: timedelta,
    is_plan: Callable[[Data], bool] = lambda price: True,
) -> SubscriptionState:
    """The state derived from these rows; `is_plan` says whether a price is one of a plan.

    After a failed payment the plan stays for `grace` from the oldest unpaid invoice after the last
    paid one, but only if it was paid for before.
    """
    rows = [row for row in subscriptions if not _is_overage(row)]
    live = [row for row in rows if row["status"] in RANK and plan_item(row, is_plan)]
    if not live:
        ended = any(row["status"] == "canceled" for row in rows)
        return SubscriptionState("canceled" if ended else "free")
    best = min(live, key=lambda row: (RANK.index(row["status"]), -row["created"], row["id"]))
    item = plan_item(best, is_plan)
    status = STATUS[best["status"]]
    return SubscriptionState(
        status=status,
        stripe_subscription_id=best["id"],
        price=item["price"],
        period_start=from_timestamp(item.get("current_period_start")),
        period_end=from_timestamp(item.get("current_period_end")),
        cancel_at_period_end=bool(best.get("cancel_at_period_end") or best.get("cancel_at")),
        grace_until=_grace_until(best, item, invoices, grace) if status == "past_due" else None,
        trial_end=from_timestamp(best.get("trial_end")),
        duplicate_subscription_id=min(
            (row["id"] for row in live if row["id"] != best["id"]), default=""
        ),
    )


def has_ever_subscribed(subscriptions: Iterable[Data]) -> bool:
    """Whether a subscription ever began; only users without one get a trial."""
    return any(row["status"] not in {"incomplete", "incomplete_expired"} for row in subscriptions)


def plan_item(subscription: Data, is_plan: Callable[[Data], bool] = lambda price: True) -> Data:
    """The item of the plan, which holds the period since 2025; else the first; empty without."""
    items = (subscription.get("items") or {}).get("data") or [{}]
    plans = (item for item in items if item.get("price") and is_plan(item["price"]))
    found: Data = next(plans, items[0])
    return found


def overage_subscription(subscriptions: Iterable[Data]) -> Data | None:
    """The subscription that charges model calls beyond the plan, unless it has ended."""
    return next((row for row in subscriptions if row["status"] in RANK and _is_overage(row)), None)


def overage_state(subscriptions: Iterable[Data]) -> dict[str, str]:
    """The overage that the account has: its price in words, and its id while it is paid and on."""
    found = overage_subscription(subscriptions)
    if found is None:
        return {"overage_subscription_id": "", "overage_price": ""}
    ends = found.get("cancel_at_period_end") or found.get("cancel_at")
    is_on = found["status"] == "active" and not ends
    price = str(price_amount(plan_item(found)["price"]))
    return {"overage_subscription_id": found["id"] if is_on else "", "overage_price": price}


def _is_overage(subscription: Data) -> bool:
    """Whether it charges nothing but usage; an operator may have added usage to a plan's."""
    item = plan_item(subscription, lambda price: not is_metered(price))
    return is_metered(item.get("price") or {})


def subscription_id_of(invoice: Data) -> str:
    """The id of the invoice's subscription, or an empty string."""
    details = (invoice.get("parent") or {}).get("subscription_details") or {}
    return id_of(details.get("subscription"))


def from_timestamp(stamp: int | None) -> datetime | None:
    return None if stamp is None else datetime.fromtimestamp(stamp, UTC)


def id_of(value: Any) -> str:
    """The id of a value that is an object or its id."""
    return str(value["id"] if isinstance(value, Mapping) else value or "")


def _grace_until(
    best: Data, item: Data, invoices: Iterable[Data], grace: timedelta
) -> datetime | None:
    own = [row for row in invoices if subscription_id_of(row) == best["id"]]
    # An invoice abandoned before a later one was paid is not due now.
    paid = [row for row in own if row.get("status") == "paid" and row.get("amount_paid")]
    settled = max((row["created"] for row in paid), default=0)
    unpaid = [
        row
        for row in own
        if row.get("status") in {"open", "uncollectible"} and row["created"] > settled
    ]
    start = item.get("current_period_start") or best["created"]
    since = from_timestamp(min((row["created"] for row in unpaid), default=start))
    # Neither a trial whose card never worked nor an upgrade that was not paid is given time.
    was_paid = paid and not any(
        row.get("billing_reason") == "subscription_update" for row in unpaid
    )
    return since if since is None or not was_paid else since + grace
