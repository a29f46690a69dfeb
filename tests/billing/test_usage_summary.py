"""What was used by day, week and month, and what of it has a price."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from accounts.errors import Invalid
from accounts.models import User
from accounts.scopes import KEY_SCOPES, Principal
from billing.models import UsageRecord
from billing.services import usage_summary
from tests.billing.test_metering import begin, finish
from tests.rest import Rest


def used(user: User, *, days_ago: int = 0, model: str = "gpt-4o-mini") -> UsageRecord:
    record = finish(begin(user), model=model)
    at = timezone.now() - timedelta(days=days_ago)
    UsageRecord.objects.filter(pk=record.pk).update(created_at=at)
    return record


def test_calls_of_one_day_are_one_row(alice: User) -> None:
    used(alice)
    used(alice)
    (row,) = usage_summary(who=alice, period="day")
    assert row.start == datetime.now(UTC).date()
    assert (row.calls, row.total_tokens, row.cost_usd) == (2, 3000, Decimal("0.000900"))


def test_days_are_newest_first_and_months_join_them(alice: User) -> None:
    used(alice, days_ago=1)
    used(alice)
    days = usage_summary(who=alice, period="day")
    assert [row.start for row in days] == sorted((row.start for row in days), reverse=True)
    assert sum(row.calls for row in usage_summary(who=alice, period="month")) == 2


def test_a_week_starts_on_monday(alice: User) -> None:
    used(alice)
    (row,) = usage_summary(who=alice, period="week")
    assert row.start.weekday() == 0
    assert row.start <= date.today()


def test_one_call_without_a_price_makes_the_cost_unknown_and_is_named(alice: User) -> None:
    used(alice)
    used(alice, model="our-own-7b")
    (row,) = usage_summary(who=alice, period="day")
    assert row.cost_usd is None
    assert row.unpriced_models == ["our-own-7b"]
    assert row.known_cost_usd == Decimal("0.000450")


def test_a_call_whose_end_was_never_seen_is_counted_apart(alice: User) -> None:
    used(alice)
    begin(alice)
    (row,) = usage_summary(who=alice, period="day")
    assert (row.calls, row.unfinished_calls) == (1, 1)
    assert row.cost_usd == Decimal("0.000450")


def test_a_stranger_sees_nothing_of_it(alice: User, charlie: User, staff: User) -> None:
    used(alice)
    assert usage_summary(who=charlie, period="day") == []
    assert usage_summary(who=staff, period="day") == []


def test_a_limited_key_sees_only_its_playbooks_usage(alice: User) -> None:
    record = used(alice)
    for ids, calls in ((frozenset({record.playbook_id}), 1), (frozenset({alice.pk}), 0)):
        who = Principal(alice, frozenset(KEY_SCOPES), playbook_ids=ids)  # type: ignore[arg-type]  # never None here
        assert sum(row.calls for row in usage_summary(who=who, period="day")) == calls


def test_an_unknown_period_is_refused(alice: User) -> None:
    with pytest.raises(Invalid):
        usage_summary(who=alice, period="year")


def test_usage_over_rest_says_what_is_not_known(alice: User) -> None:
    used(alice, model="our-own-7b")
    (row,) = Rest.of(alice).get("/billing/usage?period=month").json()["results"]
    assert row["cost_usd"] is None
    assert row["known_cost_usd"] == "0.000000"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/billing/subscription"),
        ("POST", "/billing/subscribe"),
        ("POST", "/billing/portal"),
        ("POST", "/billing/webhook"),
    ],
)
def test_what_needs_billing_says_that_it_is_off(alice: User, method: str, path: str) -> None:
    answer = Rest.of(alice).send(method, path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "billing_disabled")
