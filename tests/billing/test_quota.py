"""Monthly quota: reserved, counted, returned; cost of models as well as tokens."""

import uuid
from collections import Counter
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import transaction
from pytest_django import Settings

from accounts.models import User
from accounts.services.personal_data import delete_account
from billing.admission import begin_call
from billing.limits.quota import QuotaExceeded, has_quota, reserve_evolution, settle_evolution
from billing.limits.spending import Spender
from billing.models import (
    DeletedAccountUsage,
    Limit,
    Plan,
    QuotaPeriod,
    QuotaResource,
    UsageRecord,
)
from billing.usage.metering import finish_usage
from core.clock import database_now
from tests.factories import make_user
from tests.harness.concurrency import run_concurrently
from tests.harness.plans import set_limits, set_usage, subscribe, used_and_held

pytestmark = pytest.mark.postgres

TOKENS = QuotaResource.TOKENS


def take(user: User) -> uuid.UUID:
    period = reserve_evolution(user.pk)
    assert period is not None
    return period


def begin(user: User, tokens: int = 10, usd: str = "0") -> UsageRecord:
    """A call that reserves of the user's plan."""
    with transaction.atomic():
        return begin_call(
            Spender(user.pk, None, "line", own_key=False),
            want=Decimal(usd),
            tokens=tokens,
            now=database_now(),
            job_id=uuid.uuid4(),
            step="curate",
            operation="curate",
            model="gpt-4o-mini",
        )


def finish(record: UsageRecord, tokens: int) -> None:
    ends = {"cached_tokens": 0, "estimated": False, "request_id": "", "error": ""}
    finish_usage(record=record, prompt_tokens=tokens, completion_tokens=0, model="", **ends)  # type: ignore[arg-type]  # one type each


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("resource", ["evolutions", "tokens"])
def test_twenty_concurrent_reservations_with_seven_left_get_seven(
    alice: User, billing: Plan, resource: str
) -> None:
    set_limits(billing, **{f"monthly_{resource}": 10})
    set_usage(alice, **{f"{resource}_used": 2, f"{resource}_held": 1})

    def try_one(_: int) -> bool:
        try:
            return bool(take(alice) if resource == "evolutions" else begin(alice, tokens=1))
        except QuotaExceeded:
            return False

    assert Counter(run_concurrently(20, try_one)) == {True: 7, False: 13}
    assert used_and_held(alice, resource) == (2, 8)
    assert UsageRecord.objects.count() == (0 if resource == "evolutions" else 7)


def test_a_reservation_is_counted_or_returned(alice: User, billing: Plan) -> None:
    settle_evolution(take(alice), counts=True)
    settle_evolution(take(alice), counts=False)
    assert used_and_held(alice) == (1, 0)


def test_a_call_holds_its_most_and_then_counts_what_it_used(alice: User, billing: Plan) -> None:
    record = begin(alice, tokens=900, usd="0.5")
    assert used_and_held(alice, "tokens") == (0, 900)
    assert used_and_held(alice, "usd") == (0, Decimal("0.5"))
    finish(record, 250)
    assert used_and_held(alice, "tokens") == (250, 0)
    assert used_and_held(alice, "usd") == (record.cost_usd, 0)


def test_the_cost_of_models_is_limited_beside_their_tokens(alice: User, billing: Plan) -> None:
    set_limits(billing, monthly_usd=1)
    begin(alice, usd="0.75")
    with pytest.raises(QuotaExceeded, match="includes .1 of model calls a month, and the rest"):
        begin(alice, usd="0.26")
    assert UsageRecord.objects.count() == 1


def test_a_refusal_names_the_plan_the_limit_and_the_date(alice: User, billing: Plan) -> None:
    set_limits(billing, monthly_evolutions=3)
    period = set_usage(alice, evolutions_used=3)
    with pytest.raises(QuotaExceeded) as refused:
        take(alice)
    assert "The Free plan includes 3 evolutions a month" in str(refused.value)
    assert f"{period.end:%-d %B %Y}" in str(refused.value)
    assert not refused.value.is_busy


def test_quota_reserved_by_others_is_reported_as_busy(alice: User, billing: Plan) -> None:
    set_limits(billing, monthly_tokens=1000, monthly_evolutions=1)
    begin(alice, tokens=600)
    with pytest.raises(QuotaExceeded, match="reserved for running jobs") as refused:
        begin(alice, tokens=600)
    assert refused.value.is_busy
    take(alice)
    with pytest.raises(QuotaExceeded, match="reserved for running jobs"):
        take(alice)


def test_an_unlimited_plan_counts_without_refusing(alice: User, billing: Plan) -> None:
    set_limits(billing, monthly_evolutions=None)
    set_usage(alice, evolutions_used=1_000_000)
    settle_evolution(take(alice), counts=True)
    assert used_and_held(alice) == (1_000_001, 0)


def test_a_request_above_the_limit_is_refused(alice: User, billing: Plan) -> None:
    set_limits(billing, monthly_tokens=5)
    with pytest.raises(QuotaExceeded):
        begin(alice, tokens=10)


def test_other_users_usage_does_not_count(alice: User, charlie: User, billing: Plan) -> None:
    set_limits(billing, monthly_evolutions=1)
    set_usage(charlie, evolutions_used=1)
    assert take(alice)


def test_staff_gives_a_payer_more_than_the_plan_includes(alice: User, billing: Plan) -> None:
    set_limits(billing, monthly_evolutions=1)
    set_usage(alice, evolutions_used=1)
    extra = Limit.objects.create(user=alice, unit="evolutions", window="month", amount=2)
    assert take(alice)
    with pytest.raises(QuotaExceeded):
        take(alice)
    Limit.objects.filter(pk=extra.pk).update(amount=9, until=database_now())
    with pytest.raises(QuotaExceeded):
        take(alice)


def test_a_trial_has_a_part_of_the_plans_quota(alice: User, billing: Plan) -> None:
    subscribe(alice, "pro", status="trialing")
    set_limits(Plan.objects.get(slug="pro"), monthly_evolutions=10)
    assert [bool(take(alice)) for _ in range(2)]
    with pytest.raises(QuotaExceeded, match="includes 2 evolutions a month during the trial"):
        take(alice)


def test_a_paid_period_counts_separately_from_the_month_before(alice: User, billing: Plan) -> None:
    set_usage(alice, evolutions_used=7)
    start = database_now() - timedelta(days=3)
    subscribe(alice, "pro", period_start=start, period_end=start + timedelta(days=30))
    take(alice)
    rows = QuotaPeriod.objects.filter(user=alice).values_list("evolutions_used", "evolutions_held")
    assert sorted(rows) == [(0, 1), (7, 0)]


def test_while_billing_is_off_nothing_is_counted(alice: User) -> None:
    assert reserve_evolution(alice.pk) is None
    begin(alice)
    assert not QuotaPeriod.objects.exists()


def test_a_reservation_is_settled_after_billing_is_turned_off(
    alice: User, billing: Plan, settings: Settings
) -> None:
    period, record = take(alice), begin(alice)
    settings.BILLING_ENABLED = False
    settle_evolution(period, counts=True)
    finish(record, 4)
    assert used_and_held(alice) == (1, 0)
    assert used_and_held(alice, "tokens") == (4, 0)


def test_a_new_plan_or_period_is_a_reason_to_retry(alice: User, billing: Plan) -> None:
    set_limits(billing, monthly_tokens=5)
    with pytest.raises(QuotaExceeded) as refused:
        begin(alice, tokens=10)
    mark = refused.value.mark
    assert not has_quota(user_id=alice.pk, resource=TOKENS, mark=mark)
    subscribe(alice, "pro")
    assert has_quota(user_id=alice.pk, resource=TOKENS, mark=mark)


@pytest.mark.parametrize("address", ["alice@example.org", "Alice+2@example.org"])
def test_registering_again_does_not_renew_the_quota(
    alice: User, billing: Plan, address: str
) -> None:
    set_limits(billing, monthly_evolutions=2)
    for _ in range(2):
        settle_evolution(take(alice), counts=True)
    delete_account(user=alice)
    again, other = make_user(address), make_user("dora@example.org")
    with pytest.raises(QuotaExceeded):
        take(again)
    take(other)
    assert alice.email not in str(list(DeletedAccountUsage.objects.values()))


def test_a_call_that_ends_after_its_account_keeps_counting_for_the_server(
    alice: User, billing: Plan
) -> None:
    record = begin(alice, usd="1")
    delete_account(user=alice)
    finish(record, 1000)
    record.refresh_from_db()
    assert (record.user_id, record.status, record.held_usd) == (None, "answered", Decimal(0))
