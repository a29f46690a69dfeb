"""GET /billing/usage: usage by day, week and month, with known and unknown prices."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from accounts.models import User
from billing.models import UsageRecord
from billing.usage.reports import usage_summary
from core.errors import Invalid
from core.security.scopes import KEY_SCOPES, Principal
from tests.billing.test_metering import begin, finish
from tests.factories import make_key
from tests.harness.rest_client import Rest

pytestmark = pytest.mark.postgres


def used(user: User, *, days_ago: int = 0, model: str = "gpt-4o-mini", **call: Any) -> UsageRecord:
    record = finish(begin(user, **call), model=model)
    at = timezone.now() - timedelta(days=days_ago)
    UsageRecord.objects.filter(pk=record.pk).update(created_at=at)
    return record


def test_calls_of_one_day_are_one_row(alice: User) -> None:
    used(alice)
    used(alice)
    (row,) = usage_summary(who=alice, period="day").rows
    assert row.start == datetime.now(UTC).date()
    assert (row.calls, row.total_tokens, row.cost_usd) == (2, 3000, Decimal("0.000900"))


def test_days_are_newest_first_and_months_join_them(alice: User) -> None:
    used(alice, days_ago=1)
    used(alice)
    days = usage_summary(who=alice, period="day").rows
    assert [row.start for row in days] == sorted((row.start for row in days), reverse=True)
    assert sum(row.calls for row in usage_summary(who=alice, period="month").rows) == 2


def test_a_week_starts_on_monday(alice: User) -> None:
    used(alice)
    (row,) = usage_summary(who=alice, period="week").rows
    assert row.start.weekday() == 0
    assert row.start <= date.today()


def test_an_unpriced_call_makes_the_cost_unknown_and_names_its_model(alice: User) -> None:
    used(alice)
    used(alice, model="our-own-7b")
    (row,) = usage_summary(who=alice, period="day").rows
    assert row.cost_usd is None
    assert row.unpriced_models == ["our-own-7b"]
    assert row.known_cost_usd == Decimal("0.000450")


def test_unfinished_calls_are_counted_separately(alice: User) -> None:
    used(alice)
    begin(alice)
    (row,) = usage_summary(who=alice, period="day").rows
    assert (row.calls, row.unfinished_calls) == (1, 1)
    assert row.cost_usd == Decimal("0.000450")


def test_another_user_sees_nothing(alice: User, charlie: User, staff: User) -> None:
    used(alice)
    assert usage_summary(who=charlie, period="day").rows == []
    assert usage_summary(who=staff, period="day").rows == []


def test_a_limited_key_sees_only_its_playbooks_usage(alice: User) -> None:
    record = used(alice)
    for ids, calls in ((frozenset({record.playbook_id}), 1), (frozenset({alice.pk}), 0)):
        who = Principal(alice, frozenset(KEY_SCOPES), playbook_ids=ids)  # type: ignore[arg-type]  # never None here
        assert sum(row.calls for row in usage_summary(who=who, period="day").rows) == calls


def groups(answer: Any) -> dict[str, int]:
    return {row["group"]: row["calls"] for row in answer.json()["results"]}


def test_each_bucket_can_be_grouped_by_operation(alice: User) -> None:
    key, _ = make_key(alice)
    used(alice, api_key_id=key.pk)
    used(alice, model="gpt-4o", operation="reflect", step="reflect:1")
    rest = Rest.of(alice)
    assert groups(rest.get("/billing/usage?group_by=key")) == {str(key.pk): 1, "-": 1}
    assert groups(rest.get("/billing/usage?group_by=operation")) == {"curate": 1, "reflect": 1}
    assert groups(rest.get("/billing/usage?group_by=model")) == {"gpt-4o-mini": 1, "gpt-4o": 1}
    assert groups(rest.get("/billing/usage?group_by=playbook")) == {str(UUID(int=3)): 2}


@pytest.mark.parametrize(
    ("query", "calls"),
    [
        ("operation=reflect", 1),
        ("model=gpt-4o", 1),
        (f"playbook={UUID(int=3)}", 3),
        (f"playbook={UUID(int=4)}", 0),
        ("key=-", 3),
        (f"key={UUID(int=5)}", 0),
    ],
)
def test_a_filter_selects_matching_calls(alice: User, query: str, calls: int) -> None:
    used(alice)
    used(alice)
    used(alice, model="gpt-4o", operation="reflect", step="reflect:1")
    body = Rest.of(alice).get(f"/billing/usage?{query}").json()
    assert body["total"]["calls"] == calls


def test_the_first_and_last_day_are_included(alice: User) -> None:
    for days in (0, 1, 2, 3):
        used(alice, days_ago=days)
    today = datetime.now(UTC).date()
    first, last = today - timedelta(days=2), today - timedelta(days=1)
    body = Rest.of(alice).get(f"/billing/usage?from={first}&to={last}").json()
    assert [row["start"] for row in body["results"]] == [str(last), str(first)]
    assert (body["since"], body["until"], body["total"]["calls"]) == (str(first), str(last), 2)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("period=year", "period"),
        ("group_by=colour", "group_by"),
        ("operation=dance", "operation"),
        ("playbook=x", "playbook"),
        ("key=x", "key"),
        ("from=yesterday", "from"),
        ("from=2026-02-01&to=2026-01-01", "from"),
        ("from=2020-01-01&to=2026-01-01", "from"),
        ("to=0001-01-01", "to"),
        ("from=0001-01-01&to=0001-01-02&model=%00", "model"),
    ],
)
def test_invalid_parameters_are_refused_by_name(alice: User, query: str, field: str) -> None:
    answer = Rest.of(alice).get(f"/billing/usage?{query}")
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, [field])


def test_the_number_of_rows_is_limited(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("billing.usage.reports.MAX_ROWS", 1)
    for days in (0, 1):
        used(alice, days_ago=days)
    with pytest.raises(Invalid):
        usage_summary(who=alice)


def test_usage_over_rest_reports_unknown_costs(alice: User) -> None:
    used(alice, model="our-own-7b")
    body = Rest.of(alice).get("/billing/usage?period=month").json()
    for part in (body["total"], *body["results"]):
        assert (part["cost_usd"], part["known_cost_usd"]) == (None, "0.000000")
        assert (part["unpriced_calls"], part["unpriced_models"]) == (1, ["our-own-7b"])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/billing/subscription"),
        ("POST", "/billing/subscribe"),
        ("PUT", "/billing/overage"),
        ("POST", "/billing/portal"),
        ("POST", "/billing/webhook"),
    ],
)
def test_subscription_says_that_billing_is_off(alice: User, method: str, path: str) -> None:
    answer = Rest.of(alice).send(method, path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "billing_disabled")
