"""The daily totals behind limits: equal to the usage records, and quick to read."""

import threading
import uuid
from datetime import timedelta
from decimal import Decimal
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from billing.limits.quota import open_quota_period
from billing.models import NOBODY, DailySpend, Plan, PriceOverride, UsageRecord
from billing.plans.billing_periods import billing_period_at
from billing.pricing.backfill import backfill_prices
from billing.usage import daily_spend
from billing.usage.daily_spend import mismatched_days, rebuild_daily_spend
from billing.usage.metering import settle_abandoned_usage
from core.clock import database_now
from evolution.jobs.verification import Problem, verify_database
from tests.billing.test_budgets import DOLLAR, NOON, budget, refused, spend
from tests.billing.test_metering import begin, finish
from tests.harness.concurrency import is_waiting_for_lock, run_concurrently
from tests.harness.plans import used_and_held
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.postgres


def kept() -> list[tuple[Decimal, int]]:
    return list(DailySpend.objects.order_by("day").values_list("spent_usd", "unpriced_calls"))


def test_a_call_counts_with_its_reservation_and_then_with_its_cost(alice: User) -> None:
    record = begin(alice, held_usd=Decimal("0.5"))
    assert kept() == [(Decimal("0.5"), 0)]
    record = finish(record)
    assert kept() == [(record.cost_usd, 0)]


def test_an_unpriced_call_is_counted_until_it_is_priced(alice: User) -> None:
    finish(begin(alice, model="our-7b", held_usd=DOLLAR), model="our-7b")
    assert kept() == [(Decimal(0), 1)]
    PriceOverride.objects.create(
        model="our-7b", input_usd=1, output_usd=2, valid_from=NOON - timedelta(days=999)
    )
    backfill_prices(apply=True)
    assert kept() == [(Decimal("0.002"), 0)]


def test_totals_are_kept_by_playbook_and_day(alice: User) -> None:
    long_ago = NOON.replace(year=2020)
    spend(alice, "0.1", long_ago)
    call = spend(alice, "0.2", long_ago)
    UsageRecord.objects.filter(pk=call.pk).update(created_at=long_ago - timedelta(days=1))
    finish(begin(alice))
    assert [usd for usd, _ in kept()][:2] == [Decimal("0.2"), Decimal("0.1")]
    assert not list(mismatched_days())


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
def test_parallel_calls_lose_nothing(alice: User) -> None:
    run_concurrently(8, lambda n: finish(begin(alice, job_id=uuid.UUID(int=n), held_usd=DOLLAR)))
    total = sum(record.cost_usd or 0 for record in UsageRecord.objects.all())
    assert kept() == [(total, 0)]


def test_reading_a_budget_reads_no_usage_records(alice: User) -> None:
    budget(alice, usd_per_day=DOLLAR, usd_per_month=DOLLAR)
    spend(alice, "0.75")
    with CaptureQueriesContext(
        connection,
    ) as asked:
        assert refused(alice, "0.26")
    assert not [query for query in asked.captured_queries if "usagerecord" in query["sql"]]


@pytest.mark.parametrize("known", [True, False], ids=["wrong", "missing"])
def test_wrong_totals_are_found_and_corrected(alice: User, known: bool) -> None:
    spend(alice, "0.75")
    DailySpend.objects.update(spent_usd=3) if known else DailySpend.objects.all().delete()
    (problem,) = [found for found in verify_database() if isinstance(found, Problem)]
    assert (problem.code, "0.75" in problem.sentence) == ("spent_day", True)
    call_command("rebuild_daily_spend", stdout=(output := StringIO()))
    assert output.getvalue() == "1 wrong totals were corrected.\n"
    assert kept() == [(Decimal("0.75"), 0)]


def test_totals_of_many_users_are_corrected_in_batches(
    alice: User, charlie: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daily_spend, "USERS_PER_BATCH", 1)
    for user in (alice, charlie):
        spend(user, "0.75")
    DailySpend.objects.update(spent_usd=3)
    assert (len(list(mismatched_days())), rebuild_daily_spend(), rebuild_daily_spend()) == (2, 2, 0)
    assert kept() == [(Decimal("0.75"), 0)] * 2


def test_deleting_a_user_keeps_the_totals_without_them(alice: User) -> None:
    for _ in range(2):
        spend(alice, "0.75")
    alice.delete()
    assert (Decimal("1.5"), 0) in kept()
    assert DailySpend.objects.get(spent_usd__gt=0).user_id == NOBODY
    assert not list(mismatched_days())


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
def test_a_late_and_a_timely_end_of_calls_do_not_deadlock(billing: Plan, alice: User) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("one writer at a time: nobody can wait for anybody")
    late = held(alice)
    assert settle_abandoned_usage(max_call_duration=timedelta(0)) == 1
    failed: list[Exception] = []
    ending = threading.Thread(
        target=lambda: failed.extend(run_concurrently(1, lambda _: ends(late))[0])
    )
    with transaction.atomic():
        finish(held(alice))
        ending.start()
        wait_until(lambda: is_waiting_for_lock(ending))
    ending.join()
    assert not failed
    assert used_and_held(alice, "tokens") == (3000, 0)


def held(user: User) -> UsageRecord:
    """A running call whose tokens count against the plan."""
    period = open_quota_period(user.pk, billing_period_at(database_now()))
    return begin(user, quota_period_id=period.pk, held_tokens=5)


def ends(record: UsageRecord) -> list[Exception]:
    """Errors at the end of the call."""
    try:
        finish(record)
    except OperationalError as error:
        return [error]
    return []
