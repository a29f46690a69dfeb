"""Calls beyond a plan: up to the owner's budget, and charged from what the plan included."""

from collections import Counter
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from accounts.models import User
from accounts.services.personal_data import delete_account
from billing.admission import has_quota
from billing.errors import LimitReached
from billing.limits.quota import (
    QuotaExceeded,
    charge_overage,
    record_quota_exceeded,
    reserve_evolution,
    send_quota_notices,
)
from billing.limits.spending import Spender, SpendLimitReached, set_budget
from billing.models import (
    BillingAccount,
    DailySpend,
    Limit,
    OverageCharge,
    Plan,
    PriceOverride,
    QuotaPeriod,
    UsageRecord,
)
from billing.plans.entitlements import entitlement_for, overage_problem
from billing.pricing.backfill import backfill_prices
from billing.usage.metering import finish_usage
from core.clock import database_now
from core.security.scopes import Principal
from tests.billing.test_quota import begin
from tests.harness.concurrency import run_concurrently
from tests.harness.plans import set_limits, subscribe

pytestmark = pytest.mark.databases


def spend(user: User, usd: str) -> None:
    """A call that costs this much."""
    call = begin(user, usd=usd)
    ends = {"cost_usd": Decimal(usd), "held_usd": 0, "held_tokens": 0, "status": "answered"}
    UsageRecord.objects.filter(pk=call.pk).update(**ends)


def choose(user: User, budget: str = "3", **fields: Any) -> Plan:
    """Pro with 1 US$ and 100 tokens a month, paid, with overage to the budget."""
    start = database_now() - timedelta(days=3)
    paid = {"period_start": start, "period_end": start + timedelta(days=30)}
    chosen = {"stripe_subscription_id": "sub_1", "overage_subscription_id": "sub_2"}
    account = subscribe(user, "pro", **(paid | chosen | fields))
    plan = account.plan
    assert plan is not None
    set_limits(plan, monthly_usd=1, monthly_tokens=100)
    price = {"units": 120, "currency": "usd", "interval": "overage", "is_sold": True}
    Plan.objects.filter(pk=plan.pk).update(stripe_prices={"price_1": price})
    set_budget(by=Principal.of(user), usd_per_month=Decimal(budget))
    return plan


def overage_of(user: User) -> Decimal:
    return QuotaPeriod.objects.get(user=user).overage_usd


def test_calls_go_on_beyond_the_plan_until_the_budget(alice: User, billing: Plan) -> None:
    choose(alice)
    for usd in ("0.75", "0.75", "1"):  # and more tokens than the plan includes
        spend(alice, usd)
    assert overage_of(alice) == Decimal("1.5")
    with pytest.raises(SpendLimitReached, match=r"This month's budget of this account \(\$3.00\)"):
        begin(alice, usd="0.51")
    DailySpend.objects.all().delete()  # as if the calendar's month had begun: the paid one counts
    with pytest.raises(QuotaExceeded, match=r"With overage, your budget allows .3 of model"):
        begin(alice, usd="0.51")


@pytest.mark.django_db(transaction=True)
def test_twenty_concurrent_calls_never_exceed_the_budget(alice: User, billing: Plan) -> None:
    choose(alice)
    spend(alice, "0.9")

    def try_one(_: int) -> bool:
        try:
            return bool(begin(alice, usd="0.3"))
        except LimitReached:
            return False

    assert Counter(run_concurrently(20, try_one)) == {True: 7, False: 13}
    period = QuotaPeriod.objects.get(user=alice)
    assert (period.usd_used + period.usd_held, period.overage_from) == (Decimal(3), Decimal(1))


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "trialing"},
        {"status": "past_due", "grace_until": None},
        {"overage_subscription_id": ""},
    ],
    ids=["trial", "unpaid", "not chosen"],
)
def test_without_payment_or_choice_the_plan_is_the_limit(
    alice: User, billing: Plan, fields: dict[str, Any]
) -> None:
    choose(alice, **fields)
    with pytest.raises(QuotaExceeded, match="The Pro plan includes"):
        begin(alice, usd="1.01")


@pytest.mark.parametrize("budget", ["none", "warns", "too small", "a playbook's"])
def test_overage_needs_a_budget_that_stops(alice: User, billing: Plan, budget: str) -> None:
    choose(alice)
    rows = Limit.objects.filter(set_by="owner")
    changes: dict[str, dict[str, Any]] = {
        "warns": {"stops": False},
        "too small": {"amount": Decimal("1.50")},
    }
    if budget == "none":
        rows.delete()
    elif budget == "a playbook's":
        rows.update(playbook_id=alice.pk, scope="playbook")
    else:
        rows.update(**changes[budget])
    entitlement = entitlement_for(alice.pk)
    assert entitlement is not None
    assert overage_problem(entitlement).startswith("Overage needs a monthly budget of more than $1")
    with pytest.raises(QuotaExceeded):
        begin(alice, usd="1.01")


def test_a_call_of_unknown_price_keeps_to_the_plans_tokens(alice: User, billing: Plan) -> None:
    choose(alice)
    begin(alice, tokens=200, usd="0.01")
    with pytest.raises(QuotaExceeded, match="100 tokens"):
        begin(alice, tokens=1)


def test_evolutions_stay_limited_by_the_plan(alice: User, billing: Plan) -> None:
    set_limits(choose(alice), monthly_evolutions=1)
    reserve_evolution(alice.pk)
    with pytest.raises(QuotaExceeded, match="includes 1 evolution a month"):
        reserve_evolution(alice.pk)


def test_what_a_larger_plan_includes_is_not_charged(alice: User, billing: Plan) -> None:
    plan = choose(alice, budget="9")
    spend(alice, "1.25")
    set_limits(plan, monthly_usd=4)
    spend(alice, "2.5")
    assert overage_of(alice) == 0
    spend(alice, "0.5")
    assert overage_of(alice) == Decimal("0.25")
    set_limits(plan, monthly_usd=1)  # what was included when it was used stays so
    spend(alice, "1")
    assert overage_of(alice) == Decimal("1.25")


def test_what_the_operator_gives_is_not_charged(alice: User, billing: Plan) -> None:
    choose(alice)
    spend(alice, "1.5")
    given = Limit.objects.create(user=alice, unit="usd", window="month", amount=9)
    Limit.objects.filter(set_by="owner").update(amount=9)
    spend(alice, "2")
    assert overage_of(alice) == 0
    given.delete()
    spend(alice, "0.5")
    assert overage_of(alice) == Decimal("0.5")


def test_a_price_that_is_found_later_is_not_charged(alice: User, billing: Plan) -> None:
    choose(alice)
    unpriced = begin(alice, tokens=1)
    finish_usage(
        record=unpriced,
        prompt_tokens=100,
        completion_tokens=0,
        cached_tokens=0,
        estimated=False,
        model="own-model",
        request_id="",
        error="",
    )
    spend(alice, "1.5")
    PriceOverride.objects.create(model="own-model", input_usd=10_000, output_usd=0)
    assert backfill_prices(apply=True).cost_usd == 1
    assert overage_of(alice) == Decimal("0.5")


def test_ending_it_stops_calls_at_once_and_keeps_what_was_used(alice: User, billing: Plan) -> None:
    choose(alice)
    spend(alice, "1.5")
    BillingAccount.objects.update(overage_subscription_id="")
    with pytest.raises(QuotaExceeded):
        begin(alice, usd="0.01")
    assert overage_of(alice) == Decimal("0.5")


def test_an_account_without_a_customer_is_deleted_without_a_charge(
    alice: User, billing: Plan
) -> None:
    choose(alice)
    spend(alice, "1.5")
    charge_overage(QuotaPeriod.objects.get(user=alice).pk)
    delete_account(user=alice)
    assert not OverageCharge.objects.exists()


def test_a_job_goes_on_when_the_budget_is_raised(alice: User, billing: Plan) -> None:
    choose(alice)
    spend(alice, "2")
    DailySpend.objects.all().delete()
    with pytest.raises(QuotaExceeded) as refused:
        begin(alice, usd="1.01")
    code, spender = refused.value.code, Spender(alice.pk, None, "line", own_key=False)
    wait = {"code": code, "mark": refused.value.mark, "want": None, "now": database_now()}
    assert not has_quota(spender, **wait)  # type: ignore[arg-type]  # one type each
    Limit.objects.filter(set_by="owner").update(amount=4)
    assert has_quota(spender, **wait)  # type: ignore[arg-type]  # one type each


def test_eighty_percent_and_the_end_are_e_mailed(
    alice: User, billing: Plan, mailoutbox: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(alice, budget="10")
    spend(alice, "8.5")
    monkeypatch.setattr("django.core.cache.cache.add", lambda *_: True)
    send_quota_notices()
    DailySpend.objects.all().delete()
    with pytest.raises(QuotaExceeded) as refused:
        begin(alice, usd="1.6")
    record_quota_exceeded(refused.value, user_id=alice.pk)
    send_quota_notices()
    near, reached = (str(getattr(email, "body", "")) for email in mailoutbox)
    assert getattr(mailoutbox[1], "subject", "") == "Monthly model cost limit reached"
    assert "80% of the $10 of model calls that your budget allows" in near
    assert "They are billed monthly and stop at your budget" in near
    assert "as soon as you raise the budget" in reached
