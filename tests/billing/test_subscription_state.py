"""The state derived from subscriptions and invoices."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from billing.stripe.subscription_state import (
    SubscriptionState,
    has_ever_subscribed,
    subscription_state,
)

WEEK = timedelta(days=7)
START, END = 1_700_000_000, 1_702_592_000


def subscription(status: str, pk: str = "sub_1", created: int = START, **more: Any) -> Any:
    price = {"lookup_key": "ace_pro_monthly", "product": "ace_pro"}
    item = {"price": price, "current_period_start": START, "current_period_end": END}
    items = {"data": [item]}
    return {"id": pk, "status": status, "created": created, "items": items} | more


def invoice(status: str, created: int, subscription: str = "sub_1") -> dict[str, Any]:
    details = {"subscription_details": {"subscription": subscription}}
    paid = {"amount_paid": 2900 if status == "paid" else 0}
    return {"status": status, "created": created, "parent": details} | paid


def stand(*subscriptions: Any, invoices: Any = ()) -> SubscriptionState:
    return subscription_state(subscriptions, invoices, grace=WEEK)


@pytest.mark.parametrize(
    ("status", "ours"),
    [
        *(("active", "active"), ("trialing", "trialing"), ("past_due", "past_due")),
        *(("unpaid", "past_due"), ("canceled", "canceled"), ("paused", "free")),
        *(("incomplete", "free"), ("incomplete_expired", "free"), ("a new word", "free")),
    ],
)
def test_each_stripe_status_maps_to_an_account_status(status: str, ours: str) -> None:
    found = stand(subscription(status))
    assert found.status == ours
    assert bool(found.stripe_subscription_id) == (ours in {"active", "trialing", "past_due"})


def test_without_a_subscription_there_is_no_plan() -> None:
    assert stand() == SubscriptionState("free")


def test_the_period_is_that_of_the_first_item() -> None:
    found = stand(subscription("active"))
    assert found.period_start == datetime.fromtimestamp(START, UTC)
    assert found.period_end == datetime.fromtimestamp(END, UTC)
    assert found.price == {"lookup_key": "ace_pro_monthly", "product": "ace_pro"}


def test_grace_counts_from_the_oldest_invoice_that_is_open() -> None:
    invoices = [invoice("open", START + 50), invoice("paid", START), invoice("open", START + 20)]
    found = stand(subscription("past_due"), invoices=[*invoices, invoice("open", 1, "sub_2")])
    assert found.grace_until == datetime.fromtimestamp(START + 20, UTC) + WEEK


def test_an_abandoned_invoice_does_not_shorten_a_later_grace_period() -> None:
    old = invoice("uncollectible", START - 300)
    invoices = [invoice("open", START + 20), invoice("paid", START - 100), old]
    found = stand(subscription("past_due"), invoices=invoices)
    assert found.grace_until == datetime.fromtimestamp(START + 20, UTC) + WEEK
    alone = stand(subscription("past_due"), invoices=invoices[1:])
    assert alone.grace_until == datetime.fromtimestamp(START, UTC) + WEEK


@pytest.mark.parametrize("paid", [[], [invoice("paid", START - 9) | {"amount_paid": 0}]])
def test_without_a_first_payment_there_is_no_grace(paid: list[Any]) -> None:
    found = stand(subscription("past_due"), invoices=[*paid, invoice("open", START)])
    assert found.grace_until == datetime.fromtimestamp(START, UTC)


@pytest.mark.parametrize("how", [{"cancel_at_period_end": True}, {"cancel_at": END}])
def test_both_ways_to_cancel_at_period_end_are_recognized(how: dict[str, Any]) -> None:
    assert stand(subscription("active", **how)).cancel_at_period_end


def test_the_best_of_several_subscriptions_counts_in_any_order() -> None:
    rows = [
        subscription("past_due", "sub_1", START + 9),
        subscription("active", "sub_2", START),
        subscription("active", "sub_3", START + 1),
        subscription("canceled", "sub_4", START + 10),
    ]
    found = {stand(*order).stripe_subscription_id for order in itertools.permutations(rows)}
    assert found == {"sub_3"}


def test_a_subscription_without_an_item_entitles_to_nothing() -> None:
    assert stand(subscription("active") | {"items": {"data": []}}).status == "free"


def test_a_trial_is_used_up_by_a_subscription_that_began() -> None:
    assert has_ever_subscribed([subscription("canceled")])
    assert not has_ever_subscribed([subscription("incomplete_expired")])
