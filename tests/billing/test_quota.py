"""What is left of a plan's month: reserved, settled, given back."""

import uuid
from collections import Counter
from datetime import timedelta

import pytest
from django.db.models import QuerySet
from pytest_django import Settings

from accounts.clock import database_now
from accounts.errors import Conflict
from accounts.models import User
from accounts.scopes import Principal
from billing.models import Plan, QuotaHold, QuotaPeriod, Resource
from billing.quota import (
    QuotaReached,
    has_room,
    release,
    release_hold,
    release_stale_holds,
    reserve,
    settle,
)
from tests.billing.plans import figures, limit, put_on, use
from tests.concurrency.threads import at_once

pytestmark = pytest.mark.databases

EVOLUTIONS, TOKENS = Resource.EVOLUTIONS, Resource.TOKENS
LIFETIME = timedelta(minutes=5)


def take(user: User, *, amount: int = 1, resource: Resource = EVOLUTIONS) -> uuid.UUID:
    holder = uuid.uuid4()
    reserve(user_id=user.pk, resource=resource, amount=amount, holder_id=holder, lifetime=LIFETIME)
    return holder


@pytest.mark.django_db(transaction=True)
def test_of_twenty_at_once_with_seven_left_exactly_seven_get_through(
    alice: User, billing: Plan
) -> None:
    limit(billing, monthly_evolutions=10)
    use(alice, evolutions_used=2, evolutions_held=1)

    def try_one(_: int) -> bool:
        try:
            return bool(take(alice))
        except QuotaReached:
            return False

    assert Counter(at_once(20, try_one)) == {True: 7, False: 13}
    assert figures(alice) == (2, 8)
    assert QuotaHold.objects.count() == 7


@pytest.mark.django_db(transaction=True)
def test_of_twenty_that_settle_one_hold_exactly_one_counts(alice: User, billing: Plan) -> None:
    holder = take(alice)
    at_once(20, lambda _: settle(resource=EVOLUTIONS, holder_id=holder, actual=1))
    assert figures(alice) == (1, 0)


def test_what_was_held_counts_as_what_was_used(alice: User, billing: Plan) -> None:
    holder = take(alice, amount=900, resource=TOKENS)
    assert figures(alice, "tokens") == (0, 900)
    settle(resource=TOKENS, holder_id=holder, actual=250)
    assert figures(alice, "tokens") == (250, 0)


def test_what_failed_counts_as_nothing(alice: User, billing: Plan) -> None:
    release(resource=EVOLUTIONS, holder_id=take(alice))
    assert figures(alice) == (0, 0)
    assert not QuotaHold.objects.exists()


def test_a_hold_of_a_dead_process_is_given_back_after_its_time(alice: User, billing: Plan) -> None:
    take(alice)
    assert release_stale_holds(database_now()) == 0
    assert release_stale_holds(database_now() + LIFETIME * 2) == 1
    assert figures(alice) == (0, 0)


def test_a_refusal_says_the_plan_the_limit_and_the_date(alice: User, billing: Plan) -> None:
    limit(billing, monthly_evolutions=3)
    period = use(alice, evolutions_used=3)
    with pytest.raises(QuotaReached) as refused:
        take(alice)
    assert "The Free plan includes 3 evolutions a month" in str(refused.value)
    assert f"{period.end:%-d %B %Y}" in str(refused.value)
    assert not refused.value.is_busy


def test_what_others_hold_is_said_to_be_busy_and_not_used_up(alice: User, billing: Plan) -> None:
    limit(billing, monthly_tokens=1000)
    take(alice, amount=600, resource=TOKENS)
    with pytest.raises(QuotaReached, match="held for work under way") as refused:
        take(alice, amount=600, resource=TOKENS)
    assert refused.value.is_busy


def test_an_unlimited_plan_counts_and_refuses_nothing(alice: User, billing: Plan) -> None:
    limit(billing, monthly_evolutions=None)
    use(alice, evolutions_used=1_000_000)
    settle(resource=EVOLUTIONS, holder_id=take(alice), actual=1)
    assert figures(alice) == (1_000_001, 0)


def test_a_limit_below_what_is_asked_refuses(alice: User, billing: Plan) -> None:
    limit(billing, monthly_tokens=5)
    with pytest.raises(QuotaReached):
        take(alice, amount=10, resource=TOKENS)


def test_somebody_elses_use_takes_nothing_away(alice: User, charlie: User, billing: Plan) -> None:
    limit(billing, monthly_evolutions=1)
    use(charlie, evolutions_used=1)
    assert take(alice)


def test_a_paid_period_counts_apart_from_the_month_before_it(alice: User, billing: Plan) -> None:
    use(alice, evolutions_used=7)
    start = database_now() - timedelta(days=3)
    put_on(alice, "pro", period_start=start, period_end=start + timedelta(days=30))
    take(alice)
    rows = QuotaPeriod.objects.filter(user=alice).values_list("evolutions_used", "evolutions_held")
    assert sorted(rows) == [(0, 1), (7, 0)]


def test_while_billing_is_off_nothing_is_counted(alice: User) -> None:
    take(alice)
    assert not QuotaPeriod.objects.exists()
    assert not QuotaHold.objects.exists()


def test_what_was_held_ends_also_when_billing_is_off_by_then(
    alice: User, billing: Plan, settings: Settings
) -> None:
    holder = take(alice)
    settings.BILLING_ENABLED = False
    settle(resource=EVOLUTIONS, holder_id=holder, actual=1)
    assert figures(alice) == (1, 0)


def test_another_plan_or_another_period_is_a_reason_to_try_again(
    alice: User, billing: Plan
) -> None:
    limit(billing, monthly_tokens=5)
    with pytest.raises(QuotaReached) as refused:
        take(alice, amount=10, resource=TOKENS)
    mark = refused.value.mark
    assert not has_room(user_id=alice.pk, resource=TOKENS, mark=mark)
    put_on(alice, "pro")
    assert has_room(user_id=alice.pk, resource=TOKENS, mark=mark)


def test_a_hold_that_is_gone_is_settled_by_nobody(
    alice: User, billing: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = take(alice)
    gone = QuotaHold.objects.get()
    assert settle(resource=EVOLUTIONS, holder_id=holder, actual=1) == gone.period_id
    # Found before somebody else settled it.
    monkeypatch.setattr(QuerySet, "first", lambda rows: gone)
    assert settle(resource=EVOLUTIONS, holder_id=holder, actual=1) is None
    with pytest.raises(Conflict, match="ended already"):
        release_hold(hold=gone, by=Principal.of(alice))
    assert figures(alice) == (1, 0)
