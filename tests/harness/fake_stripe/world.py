"""The objects of the fake Stripe, and how payments, changes of plan and time change them."""

import copy
import itertools
import threading
from typing import Any

Data = dict[str, Any]
DAY = 86_400
MONTH = 30 * DAY
PERIODS = {"week": 7 * DAY, "month": MONTH, "year": 365 * DAY}
GOOD, DECLINED, FAILS_LATER = "4242424242424242", "4000000000000002", "4000000000000341"
"""FAILS_LATER is accepted for a trial, and every charge of it fails."""
METER_LAG = 120
"""Seconds until a meter's event counts: Stripe takes it at once and adds it up later."""
RETRIES = (3 * DAY, 5 * DAY, 7 * DAY)
"""When an unpaid renewal is tried again; after the last one the subscription is over."""


class Declined(Exception):
    """The card was declined."""


class Missing(Exception):
    """No such object."""


class World:
    """Objects by id, a clock, and an event for each change."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.lock = threading.RLock()
        self.objects: dict[str, Data] = {}
        self.cards: dict[str, str] = {}
        self.events: list[Data] = []
        self._numbers = itertools.count(1)

    def saved(self) -> Data:
        """A copy of everything but the clock, for `restore`."""
        state = {name: value for name, value in vars(self).items() if name not in {"now", "lock"}}
        return copy.deepcopy(state)

    def restore(self, saved: Data) -> None:
        vars(self).update(copy.deepcopy(saved))

    def add(self, prefix: str, kind: str, **fields: Any) -> Data:
        made: Data = {
            "id": f"{prefix}_{next(self._numbers):06d}",
            "object": kind,
            "created": self.now,
            "livemode": False,
            "metadata": {},
        } | fields
        self.objects[made["id"]] = made
        return made

    def get(self, pk: str, kind: str) -> Data:
        found = self.objects.get(pk)
        if found is None or found["object"] != kind:
            raise Missing(pk)
        return found

    def every(self, kind: str, **same: Any) -> list[Data]:
        """Newest first, as Stripe lists."""
        rows = [row for row in self.objects.values() if row["object"] == kind]
        return [row for row in reversed(rows) if same.items() <= row.items()]

    def tell(self, kind: str, about: Data) -> None:
        event = {
            "id": f"evt_{next(self._numbers):06d}",
            "object": "event",
            "api_version": "2026-08-26.dahlia",
            "created": self.now,
            "livemode": False,
            "type": kind,
            "data": {"object": copy.deepcopy(about)},
        }
        self.events.append(event)

    # --- paying -------------------------------------------------------------------------------
    def pay(self, session: Data, card: str) -> Data:
        """Pay a checkout with this card, which begins a subscription. Raises Declined."""
        trial = int(session["subscription_data"].get("trial_period_days", 0)) * DAY
        if card == DECLINED or (card == FAILS_LATER and not trial):
            raise Declined
        self.cards[session["customer"]] = card
        price = self.get(session["line_items"][0]["price"], "price")
        subscription = self.begin(session["customer"], price, trial)
        session |= {"status": "complete", "subscription": subscription["id"], "url": None}
        self.tell("checkout.session.completed", session)
        return subscription

    def begin(self, customer: str, price: Data, trial: int, *, method: str = "") -> Data:
        """Begin a subscription with its first invoice; `trial` in seconds.

        `method`: a payment method that exists, else one of the customer's card is made.
        """
        end = self.now + (trial or period_of(price))
        item = {"id": "si_1", "object": "subscription_item", "price": price, "quantity": 1}
        item |= {"current_period_start": self.now, "current_period_end": end}
        method = method or self._card(customer)
        made = self.add(
            "sub",
            "subscription",
            customer=customer,
            status="trialing" if trial else "active",
            cancel_at=None,
            cancel_at_period_end=False,
            schedule=None,
            default_payment_method=method,
            trial_end=end if trial else None,
            ended_at=None,
            items={"object": "list", "data": [item], "has_more": False, "url": "/"},
        )
        self.tell("customer.subscription.created", made)
        self.bill(made, 0 if trial else price["unit_amount"] or 0, "subscription_create")
        return made

    def _card(self, customer: str) -> str:
        """The payment method of the customer's card, whose fingerprint all its users share."""
        number = self.cards.get(customer, GOOD)
        made = self.add("pm", "payment_method", card={"fingerprint": f"print{number}"})
        return str(made["id"])

    def bill(
        self,
        subscription: Data,
        amount: int,
        reason: str = "subscription_cycle",
        *,
        used: int = 1,
        collect: bool = True,
    ) -> Data:
        """Create an invoice for the period and try to charge it once, else leave it a draft."""
        amount += subscription.pop("pending", 0)
        item = subscription["items"]["data"][0]
        lines: list[Data] = [{"description": reason, "amount": amount, "quantity": used}]
        number = f"ACE-{next(self._numbers):04d}"
        parent = {
            "type": "subscription_details",
            "subscription_details": {"subscription": subscription["id"]},
        }
        invoice = self.add(
            "in",
            "invoice",
            customer=subscription["customer"],
            customer_email=self.objects[subscription["customer"]].get("email"),
            number=number,
            status="open",
            currency=item["price"]["currency"],
            total=amount,
            amount_due=amount,
            amount_paid=0,
            amount_remaining=amount,
            attempts=0,
            parent=parent,
            billing_reason=reason,
            lines={"object": "list", "data": lines, "has_more": False, "url": "/"},
            period_start=item["current_period_start"],
            period_end=item["current_period_end"],
            hosted_invoice_url=f"https://invoice.stripe.com/i/{number}",
            invoice_pdf=f"https://pay.stripe.com/invoice/{number}/pdf",
        )
        subscription["latest_invoice"] = invoice["id"]
        if collect:
            self._charge(invoice, subscription)
        else:
            invoice["status"] = "draft"
        return invoice

    def usage(self, subscription: Data, now: int) -> Data:
        """What was used in the period, as `bill` takes it; events younger than the lag do not
        count before the period's end."""
        item, customer = subscription["items"]["data"][0], subscription["customer"]
        if item["price"]["unit_amount"] is not None:
            return {"amount": item["price"]["unit_amount"]}
        name = self.get(item["price"]["recurring"]["meter"], "billing.meter")["event_name"]
        is_over = now >= item["current_period_end"]
        used = sum(
            int(row["payload"]["value"])
            for row in self.every("billing.meter_event", event_name=name)
            if row["payload"]["stripe_customer_id"] == customer
            and item["current_period_start"] <= row["timestamp"] < item["current_period_end"]
            and (is_over or row["created"] + METER_LAG <= now)
        )
        return {"amount": round(used * float(item["price"]["unit_amount_decimal"])), "used": used}

    def _charge(self, invoice: Data, subscription: Data) -> None:
        if invoice["total"] and self.cards.get(invoice["customer"]) != GOOD:
            invoice["attempts"] += 1
            subscription["status"] = "past_due"
            self.tell("customer.subscription.updated", subscription)
            self.tell("invoice.payment_failed", invoice)
            return
        invoice |= {"status": "paid", "amount_paid": invoice["total"], "amount_remaining": 0}
        self.tell("invoice.paid", invoice)
        if subscription["status"] == "past_due":
            subscription["status"] = "active"
            self.tell("customer.subscription.updated", subscription)

    # --- the portal ---------------------------------------------------------------------------
    def cancel_at_end(self, subscription: Data) -> None:
        subscription["cancel_at_period_end"] = True
        self.tell("customer.subscription.updated", subscription)

    def change_price(self, subscription: Data, price: Data, rules: Data) -> None:
        """Change the plan by the portal's `rules`: at the period's end, or now with a proration."""
        item = subscription["items"]["data"][0]
        old, now = item["price"]["unit_amount"], price["unit_amount"]
        later = {
            row["type"] for row in rules.get("schedule_at_period_end", {}).get("conditions", [])
        }
        is_shorter = period_of(price) < period_of(item["price"])
        if (now < old and "decreasing_item_amount" in later) or (
            is_shorter and "shortening_interval" in later
        ):
            phases = [{"items": [{"price": price["id"]}]}]
            fields = {"subscription": subscription["id"], "phases": phases, "status": "active"}
            schedule = self.add("sub_sched", "subscription_schedule", **fields)
            subscription["schedule"] = schedule["id"]
            self.tell("customer.subscription.updated", subscription)
            return
        self._change_now(subscription, price, rules.get("proration_behavior", "none"))

    def _change_now(self, subscription: Data, price: Data, proration: str) -> None:
        item = subscription["items"]["data"][0]
        begun, end = item["current_period_start"], item["current_period_end"]
        left = (end - self.now) / (end - begun)
        owed = round((price["unit_amount"] - item["price"]["unit_amount"]) * left)
        item["price"] = price
        if subscription["status"] == "trialing":
            self.end_trial(subscription)
            return
        self.tell("customer.subscription.updated", subscription)
        if proration == "always_invoice":
            self.bill(subscription, owed, "subscription_update")
        elif proration == "create_prorations":
            subscription["pending"] = subscription.get("pending", 0) + owed

    def end_trial(self, subscription: Data) -> None:
        """Begin the first paid period now."""
        item = subscription["items"]["data"][0]
        item["current_period_start"] = self.now
        item["current_period_end"] = self.now + period_of(item["price"])
        subscription |= {"status": "active", "trial_end": self.now}
        self.tell("customer.subscription.updated", subscription)
        self.bill(subscription, item["price"]["unit_amount"])

    def change_card(self, customer: str, card: str) -> None:
        """Set a new card and charge unpaid invoices to it."""
        self.cards[customer] = card
        for row in self.every("subscription", customer=customer):
            if not is_metered(row):
                row["default_payment_method"] = self._card(customer)
                self.tell("customer.subscription.updated", row)
        for invoice in self.every("invoice", customer=customer, status="open"):
            self._charge(invoice, self._subscription_of(invoice))

    def end(self, subscription: Data) -> None:
        subscription |= {"status": "canceled", "ended_at": self.now}
        self.tell("customer.subscription.deleted", subscription)

    def delete_customer(self, customer: Data) -> None:
        for subscription in self.every("subscription", customer=customer["id"]):
            if subscription["status"] != "canceled":
                self.end(subscription)
        kept = {name: customer[name] for name in ("id", "object", "livemode", "created")}
        customer.clear()
        customer |= kept | {"deleted": True}
        self.tell("customer.deleted", customer)

    # --- time ---------------------------------------------------------------------------------
    def advance(self, seconds: int) -> None:
        """Advance the clock; what falls due happens at its own time."""
        until = self.now + seconds
        while due := [row for row in self._due() if row[0] <= until]:
            moment, subscription = min(due, key=lambda row: row[0])
            self.now = max(self.now, moment)
            self._fall_due(subscription)
        self.now = until

    def _due(self) -> list[tuple[int, Data]]:
        found = []
        for row in self.every("subscription"):
            if row["status"] in {"active", "trialing"}:
                found.append((row["items"]["data"][0]["current_period_end"], row))
            elif row["status"] == "past_due":
                unpaid = self._unpaid(row)
                found.append((unpaid["created"] + RETRIES[unpaid["attempts"] - 1], row))
        return found

    def _fall_due(self, subscription: Data) -> None:
        if subscription["status"] == "past_due":
            self._charge(self._unpaid(subscription), subscription)
            if subscription["status"] == "past_due" and self._is_last_try(subscription):
                self.end(subscription)
        elif subscription["cancel_at_period_end"]:
            if is_metered(subscription):
                self.bill(subscription, **self.usage(subscription, self.now))
            self.end(subscription)
        else:
            self._renew(subscription)

    def _renew(self, subscription: Data) -> None:
        item = subscription["items"]["data"][0]
        used = self.usage(subscription, self.now)
        if subscription["schedule"]:
            schedule = self.objects[subscription["schedule"]]
            item["price"] = self.objects[schedule["phases"][0]["items"][0]["price"]]
            subscription["schedule"] = None
        item["current_period_start"] = item["current_period_end"]
        item["current_period_end"] += period_of(item["price"])
        subscription["status"] = "active"
        self.tell("customer.subscription.updated", subscription)
        if item["price"]["unit_amount"] is not None:
            used = {"amount": item["price"]["unit_amount"]}
        self.bill(subscription, **used)

    def _unpaid(self, subscription: Data) -> Data:
        rows = self.every("invoice", customer=subscription["customer"], status="open")
        return next(row for row in rows if self._subscription_of(row) is subscription)

    def _is_last_try(self, subscription: Data) -> bool:
        return bool(self._unpaid(subscription)["attempts"] > len(RETRIES))

    def _subscription_of(self, invoice: Data) -> Data:
        return self.get(invoice["parent"]["subscription_details"]["subscription"], "subscription")


def period_of(price: Data) -> int:
    """Seconds of the price's interval."""
    return PERIODS[price["recurring"]["interval"]]


def is_metered(subscription: Data) -> bool:
    """Whether it charges usage."""
    return any(item["price"]["unit_amount"] is None for item in subscription["items"]["data"])
