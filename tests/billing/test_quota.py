"""Monthly quota: reserve, settle, release."""

import uuid
from collections import Counter
from datetime import timedelta

import pytest
from django.db.models import QuerySet
from pytest_django import Settings

from accounts.models import User
from accounts.services.personal_data import delete_account
from billing.limits.quota import (
    QuotaExceeded,
    has_quota,
    release_hold,
    release_quota,
    release_stale_holds,
    reserve_quota,
    settle_quota,
)
from billing.models import DeletedAccountUsage, Plan, QuotaHold, QuotaPeriod, QuotaResource
from core.clock import database_now
from core.errors import Conflict
from core.security.scopes import Principal
from tests.factories import make_user
from tests.harness.concurrency import run_concurrently
from tests.harness.plans import set_limits, set_usage, subscribe, used_and_held

pytestmark = pytest.mark.databases

EVOLUTIONS, TOKENS = QuotaResource.EVOLUTIONS, QuotaResource.TOKENS
LIFETIME = timedelta(minutes=5)


def take(user: User, *, amount: int = 1, resource: QuotaResource = EVOLUTIONS) -> uuid.UUID:
    holder = uuid.uuid4()
    reserve_quota(
        user_id=user.pk, resource=resource, amount=amount, holder_id=holder, lifetime=LIFETIME
    )
    return holder


@pytest.mark.django_db(transaction=True)
def test_twenty_concurrent_reservations_with_seven_left_get_seven(
    alice: User, billing: Plan
) -> None:
    set_limits(billing, monthly_evolutions=10)
    set_usage(alice, evolutions_used=2, evolutions_held=1)

    def try_one(_: int) -> bool:
        try:
            return bool(take(alice))
        except QuotaExceeded:
            return False

    assert Counter(run_concurrently(20, try_one)) == {True: 7, False: 13}
    assert used_and_held(alice) == (2, 8)
    assert QuotaHold.objects.count() == 7


@pytest.mark.django_db(transaction=True)
def test_twenty_concurrent_settlements_of_one_hold_count_once(alice: User, billing: Plan) -> None:
    holder = take(alice)
    run_concurrently(20, lambda _: settle_quota(resource=EVOLUTIONS, holder_id=holder, actual=1))
    assert used_and_held(alice) == (1, 0)


def test_a_settled_hold_counts_the_actual_usage(alice: User, billing: Plan) -> None:
    holder = take(alice, amount=900, resource=TOKENS)
    assert used_and_held(alice, "tokens") == (0, 900)
    settle_quota(resource=TOKENS, holder_id=holder, actual=250)
    assert used_and_held(alice, "tokens") == (250, 0)


def test_a_released_hold_counts_nothing(alice: User, billing: Plan) -> None:
    release_quota(resource=EVOLUTIONS, holder_id=take(alice))
    assert used_and_held(alice) == (0, 0)
    assert not QuotaHold.objects.exists()


def test_the_hold_of_a_dead_process_is_released_when_it_expires(alice: User, billing: Plan) -> None:
    take(alice)
    assert release_stale_holds(database_now()) == 0
    assert release_stale_holds(database_now() + LIFETIME * 2) == 1
    assert used_and_held(alice) == (0, 0)


def test_a_refusal_names_the_plan_the_limit_and_the_date(alice: User, billing: Plan) -> None:
    set_limits(billing, monthly_evolutions=3)
    period = set_usage(alice, evolutions_used=3)
    with pytest.raises(QuotaExceeded) as refused:
        take(alice)
    assert "The Free plan includes 3 evolutions a month" in str(refused.value)
    assert f"{period.end:%-d %B %Y}" in str(refused.value)
    assert not refused.value.is_busy


def test_quota_reserved_by_others_is_reported_as_busy(alice: User, billing: Plan) -> None:
    set_limits(billing, monthly_tokens=1000)
    take(alice, amount=600, resource=TOKENS)
    with pytest.raises(QuotaExceeded, match="reserved for running jobs") as refused:
        take(alice, amount=600, resource=TOKENS)
    assert refused.value.is_busy


def test_an_unlimited_plan_counts_without_refusing(alice: User, billing: Plan) -> None:
    set_limits(billing, monthly_evolutions=None)
    set_usage(alice, evolutions_used=1_000_000)
    settle_quota(resource=EVOLUTIONS, holder_id=take(alice), actual=1)
    assert used_and_held(alice) == (1_000_001, 0)


def test_a_request_above_the_limit_is_refused(alice: User, billing: Plan) -> None:
    set_limits(billing, monthly_tokens=5)
    with pytest.raises(QuotaExceeded):
        take(alice, amount=10, resource=TOKENS)


def test_other_users_usage_does_not_count(alice: User, charlie: User, billing: Plan) -> None:
    set_limits(billing, monthly_evolutions=1)
    set_usage(charlie, evolutions_used=1)
    assert take(alice)


def test_a_paid_period_counts_separately_from_the_month_before(alice: User, billing: Plan) -> None:
    set_usage(alice, evolutions_used=7)
    start = database_now() - timedelta(days=3)
    subscribe(alice, "pro", period_start=start, period_end=start + timedelta(days=30))
    take(alice)
    rows = QuotaPeriod.objects.filter(user=alice).values_list("evolutions_used", "evolutions_held")
    assert sorted(rows) == [(0, 1), (7, 0)]


def test_while_billing_is_off_nothing_is_counted(alice: User) -> None:
    take(alice)
    assert not QuotaPeriod.objects.exists()
    assert not QuotaHold.objects.exists()


def test_a_hold_is_settled_after_billing_is_turned_off(
    alice: User, billing: Plan, settings: Settings
) -> None:
    holder = take(alice)
    settings.BILLING_ENABLED = False
    settle_quota(resource=EVOLUTIONS, holder_id=holder, actual=1)
    assert used_and_held(alice) == (1, 0)


def test_a_new_plan_or_period_is_a_reason_to_retry(alice: User, billing: Plan) -> None:
    set_limits(billing, monthly_tokens=5)
    with pytest.raises(QuotaExceeded) as refused:
        take(alice, amount=10, resource=TOKENS)
    mark = refused.value.mark
    assert not has_quota(user_id=alice.pk, resource=TOKENS, mark=mark)
    subscribe(alice, "pro")
    assert has_quota(user_id=alice.pk, resource=TOKENS, mark=mark)


def test_a_settled_hold_cannot_be_settled_again(
    alice: User, billing: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = take(alice)
    gone = QuotaHold.objects.get()
    assert settle_quota(resource=EVOLUTIONS, holder_id=holder, actual=1) == gone.period_id
    # Read before another process settled it.
    monkeypatch.setattr(QuerySet, "first", lambda rows: gone)
    assert settle_quota(resource=EVOLUTIONS, holder_id=holder, actual=1) is None
    with pytest.raises(Conflict, match="settled already"):
        release_hold(hold=gone, by=Principal.of(alice))
    assert used_and_held(alice) == (1, 0)


def test_registering_again_does_not_renew_the_quota(alice: User, billing: Plan) -> None:
    set_limits(billing, monthly_evolutions=2)
    for _ in range(2):
        settle_quota(resource=EVOLUTIONS, holder_id=take(alice), actual=1)
    delete_account(user=alice)
    again, other = make_user(alice.email), make_user("dora@example.org")
    with pytest.raises(QuotaExceeded):
        take(again)
    take(other)
    assert alice.email not in str(list(DeletedAccountUsage.objects.values()))
