"""Budgets: set by page and REST, enforced at each call, one warning e-mail."""

import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core import mail
from django.core.cache import cache
from django.test import Client

from accounts.models import User
from accounts.services.personal_data import delete_account
from billing.limits.spending import (
    BudgetStatus,
    Spender,
    SpendLimitReached,
    check_spend_limits,
    list_budgets,
    send_budget_warnings,
    set_budget,
    span_end,
    span_start,
)
from billing.models import DailySpend, Limit, UsageRecord
from billing.usage.daily_spend import mismatched_days
from core.clock import database_now
from core.errors import NotFound
from core.models import AuditEntry
from core.security.scopes import KEY_SCOPES, Principal
from playbooks.models import Playbook
from tests.harness.clients import logged_in_client
from tests.harness.plans import limit_spending
from tests.harness.rest_client import Rest
from tests.pages.test_usage import use

pytestmark = pytest.mark.postgres

NOON = datetime(2026, 12, 31, 12, tzinfo=UTC)
DOLLAR = Decimal(1)


def budget(user: User, **fields: Any) -> None:
    set_budget(by=Principal.of(user), **fields)


def spend(user: User, usd: str | None, at: datetime = NOON, **fields: Any) -> UsageRecord:
    cost = None if usd is None else Decimal(usd)
    return use(user, cost_usd=cost, created_at=at, **fields)


def refused(user: User, want: str = "0", at: datetime = NOON, **changes: Any) -> str:
    """The reason why a call is refused; empty if it is allowed."""
    who: dict[str, Any] = {"playbook_id": None, "credential": "line", "own_key": False}
    try:
        check_spend_limits(Spender(user.pk, **who | changes), want=Decimal(want), now=at)
    except SpendLimitReached as reached:
        return str(reached)
    return ""


def send_warnings() -> list[str]:
    """The e-mails sent now, as if a minute had passed."""
    cache.delete("budget-warnings")
    before = len(mail.outbox)
    send_budget_warnings()
    return [f"{email.subject}\n{email.body}" for email in mail.outbox[before:]]


def test_a_month_ends_with_the_year_and_a_day_with_the_month() -> None:
    assert span_start("month", NOON) == date(2026, 12, 1)
    assert span_end("month", NOON) == span_end("day", NOON) == datetime(2027, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("span", "message"),
    [
        ("day", "Today's budget of this account ($1.00)"),
        ("month", "This month's budget of this account"),
    ],
)
def test_the_message_of_a_reached_budget_names_it_and_its_end(
    alice: User, span: str, message: str
) -> None:
    budget(alice, **{f"usd_per_{span}": DOLLAR})
    spend(alice, "0.75")
    assert refused(alice, "0.25") == ""
    reason = refused(alice, "0.26")
    assert message in reason
    assert "resume at 00:00 UTC on 1 January, or once the budget is raised" in reason


def test_what_was_spent_before_the_day_or_the_month_does_not_count(alice: User) -> None:
    budget(alice, usd_per_day=DOLLAR, usd_per_month=Decimal(2))
    spend(alice, "5", NOON - timedelta(days=31))
    spend(alice, "1", NOON - timedelta(days=1))
    assert refused(alice, "1") == ""
    assert "Today" in refused(alice, "1.01")


def test_a_budget_counts_calls_with_every_key(alice: User) -> None:
    budget(alice, usd_per_day=DOLLAR)
    spend(alice, "0.5", credential="old line")
    spend(alice, "0.5", credential="line")
    assert refused(alice, "0.01", own_key=True)


def test_a_playbooks_budget_binds_only_that_playbook(alice: User, playbook: Playbook) -> None:
    budget(alice, playbook_id=playbook.pk, usd_per_month=DOLLAR)
    spend(alice, "1", playbook_id=playbook.pk)
    assert "of this playbook" in refused(alice, "0.01", playbook_id=playbook.pk)
    assert refused(alice, "0.01", playbook_id=uuid.uuid4()) == refused(alice, "0.01") == ""


def test_a_budget_that_only_warns_stops_nothing(alice: User) -> None:
    budget(alice, usd_per_day=DOLLAR, stops=False)
    spend(alice, "5")
    assert refused(alice, "1") == ""


def test_other_users_have_their_own_limits(alice: User, charlie: User) -> None:
    budget(alice, usd_per_day=DOLLAR)
    spend(charlie, "5")
    assert refused(alice, "1") == refused(charlie, "1") == ""


@pytest.mark.parametrize("scope", ["account", "playbook", "server"])
def test_the_operator_can_cap_a_month(alice: User, scope: str) -> None:
    limit_spending(DOLLAR, "month", scope)
    one = uuid.uuid4()
    spend(alice, "1", NOON - timedelta(days=20), credential="line", playbook_id=one)
    assert "This month's cost limit" in refused(alice, "0.01", playbook_id=one)
    assert refused(alice, "0.01", playbook_id=one, own_key=True) == ""


def test_a_row_of_ones_own_replaces_only_the_limit_of_its_window(alice: User) -> None:
    limit_spending(DOLLAR)
    cap = limit_spending("50", "month", user=alice)
    assert refused(alice, "1.01")
    own = limit_spending("9", user=alice)
    assert refused(alice, "1.01") == ""
    Limit.objects.filter(pk=own.pk).update(amount=None)
    assert refused(alice, "49") == ""
    Limit.objects.filter(pk=cap.pk).update(amount=48)
    assert refused(alice, "49")


def test_a_row_until_a_date_ends_with_it(alice: User) -> None:
    limit_spending(DOLLAR)
    own = limit_spending("9", user=alice)
    for until, is_refused in ((timedelta(days=1), False), (-timedelta(days=1), True)):
        Limit.objects.filter(pk=own.pk).update(until=database_now() + until)
        assert bool(refused(alice, "2")) == is_refused


def test_a_new_key_of_the_operators_does_not_renew_the_months_limit(alice: User) -> None:
    limit_spending(DOLLAR, "month")
    spend(alice, "1", credential="old key")
    assert refused(alice, "0.01", credential="new key")


def test_calls_with_an_owners_key_count_only_against_their_own_limits(alice: User) -> None:
    limit_spending(DOLLAR)
    spend(alice, "5", own_key=True)
    assert refused(alice, "1") == refused(alice, "1", own_key=True) == ""
    limit_spending(DOLLAR, user=alice)
    assert refused(alice, "0.01", own_key=True)
    assert refused(alice, "1") == ""


def test_what_a_deleted_account_spent_counts_for_the_server(alice: User, charlie: User) -> None:
    limit_spending(DOLLAR, scope="server")
    record = spend(alice, "1")
    delete_account(user=alice)
    assert refused(charlie, "0.01")
    record.refresh_from_db()
    assert (record.user, record.api_key_id, record.cost_usd) == (None, None, DOLLAR)
    assert not list(mismatched_days())
    assert not DailySpend.objects.filter(user_id=alice.pk).exists()


@pytest.mark.parametrize(
    ("spent", "state"), [("0.79", "ok"), ("0.80", "warning"), ("1", "reached"), ("9", "reached")]
)
def test_a_budget_status_is_ok_then_warning_then_reached(spent: str, state: str) -> None:
    status = BudgetStatus(Limit(amount=DOLLAR), Decimal(spent), 0, NOON)
    assert status.state == state


def test_running_calls_count_with_their_reservation_and_unpriced_ones_are_counted(
    alice: User,
) -> None:
    budget(alice, usd_per_month=DOLLAR)
    now = datetime.now(UTC)
    spend(alice, "0.25", now)
    spend(alice, None, now, status="started", held_usd=Decimal("0.5"))
    spend(alice, None, now)
    (one,) = list_budgets(who=alice)
    assert one.month is not None
    assert (one.month.spent_usd, one.month.unpriced_calls) == (Decimal("0.75"), 1)


def test_the_queries_of_budgets_do_not_grow_with_playbooks(
    alice: User, django_assert_num_queries: Callable[[int], Any]
) -> None:
    budget(alice, usd_per_day=DOLLAR)
    for _ in range(4):
        of: dict[str, Any] = {"user": alice, "playbook_id": uuid.uuid4(), "scope": "playbook"}
        Limit.objects.create(set_by="owner", unit="usd", window="day", amount=DOLLAR, **of)
    with django_assert_num_queries(3):  # the budgets, the clock, what they count
        assert len(list_budgets(who=alice)) == 5


def test_one_email_for_each_day_and_each_month(alice: User) -> None:
    budget(alice, usd_per_day=DOLLAR, usd_per_month=Decimal(100))
    now = datetime.now(UTC)
    spend(alice, "0.79", now)
    assert send_warnings() == []
    spend(alice, "0.02", now)
    (email,) = send_warnings()
    assert email.startswith("You've used 81% of today's budget")
    assert "$0.81 of the $1.00" in email
    assert send_warnings() == []
    budget(alice, usd_per_day=Decimal("0.9"), usd_per_month=DOLLAR)
    assert [line[:15] for line in send_warnings()] == ["You've used 90%", "You've used 81%"]


def test_the_next_day_gets_its_own_email(alice: User) -> None:
    budget(alice, usd_per_day=DOLLAR)
    spend(alice, "2", datetime.now(UTC))
    assert len(send_warnings()) == 1
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    Limit.objects.filter(user=alice).update(warned_on=yesterday)
    assert len(send_warnings()) == 1


def test_warnings_are_checked_once_a_minute(alice: User) -> None:
    budget(alice, usd_per_day=DOLLAR)
    assert send_warnings() == []
    spend(alice, "2", datetime.now(UTC))
    assert send_budget_warnings() == 0


def test_inactive_or_idle_users_get_no_notice(alice: User, charlie: User) -> None:
    for user in (alice, charlie):
        budget(user, usd_per_month=DOLLAR)
    spend(alice, "2", datetime.now(UTC) - timedelta(hours=1))
    spend(charlie, "2", datetime.now(UTC))
    User.objects.filter(pk=charlie.pk).update(is_active=False)
    assert send_warnings() == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"usd_per_day": "-1"},
        {"usd_per_day": "0"},
        {"usd_per_month": "1e9"},
        {"usd_per_day": "1", "warn_percent": 0},
        {"usd_per_day": "1", "warn_percent": 101},
    ],
)
def test_an_invalid_budget_is_refused(alice: User, wrong: dict[str, Any]) -> None:
    assert Rest.of(alice).put("/billing/budgets", wrong).status_code == 400
    assert not Limit.objects.filter(user=alice).exists()


def test_each_change_is_audited_and_without_amounts_the_budget_is_removed(alice: User) -> None:
    budget(alice, usd_per_day=DOLLAR)
    budget(alice)
    budget(alice)
    actions = AuditEntry.objects.filter(action__endswith="budget").order_by("at")
    assert [entry.action for entry in actions] == ["set_budget", "remove_budget"]
    assert not Limit.objects.filter(user=alice).exists()


def test_a_key_limited_to_playbooks_reaches_only_their_budgets(
    alice: User, playbook: Playbook
) -> None:
    budget(alice, usd_per_day=DOLLAR)
    budget(alice, playbook_id=playbook.pk, usd_per_day=DOLLAR)
    who = Principal(alice, frozenset(KEY_SCOPES), playbook_ids=frozenset({playbook.pk}))
    assert [one.playbook_id for one in list_budgets(who=who)] == [playbook.pk]
    with pytest.raises(NotFound):
        set_budget(by=who, usd_per_day=DOLLAR)


def test_rest_sets_shows_and_removes_a_budget(alice: User, playbook: Playbook) -> None:
    rest, one = Rest.of(alice), f"/billing/budgets/{playbook.pk}"
    spend(alice, "0.9", datetime.now(UTC), playbook_id=playbook.pk)
    made = rest.put(one, {"usd_per_day": "1.00", "stops": False}).json()
    assert (made["usd_per_day"], made["month"], made["stops"]) == ("1.00", None, False)
    assert (made["day"]["spent_usd"], made["day"]["state"]) == ("0.900000", "warning")
    rest.put("/billing/budgets", {"usd_per_month": "20"})
    listed = rest.get("/billing/budgets").json()["results"]
    assert [row["playbook_id"] for row in listed] == [None, str(playbook.pk)]
    assert rest.put(one, {}).json()["usd_per_day"] is None
    assert len(rest.get("/billing/budgets").json()["results"]) == 1


def test_another_users_playbook_cannot_get_a_budget(charlie: User, playbook: Playbook) -> None:
    rest = Rest.of(charlie)
    for pk in (playbook.pk, uuid.uuid4()):
        answer = rest.put(f"/billing/budgets/{pk}", {"usd_per_day": "1"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert (
        logged_in_client(charlie).get(f"/usage/budgets/set?playbook={playbook.pk}").status_code
        == 404
    )


def test_the_page_sets_a_budget_and_shows_what_is_spent(
    alice: User, playbook: Playbook, client: Client
) -> None:
    client.force_login(alice)
    sent = {"usd_per_day": "1", "usd_per_month": "", "warn_percent": "50", "stops": "yes"}
    answer = client.post(f"/usage/budgets/set?playbook={playbook.pk}", sent)
    assert (answer.status_code, answer["Location"]) == (302, "/usage/budgets")
    spend(alice, "0.6", datetime.now(UTC), playbook_id=playbook.pk)
    page = " ".join(client.get("/usage/budgets").content.decode().split())
    assert "$0.60 of $1.00" in page
    assert "Over 50% spent" in page
    assert playbook.name in page
    assert (
        "You've used 60% of today's budget for a playbook" in client.get("/usage").content.decode()
    )


def test_the_form_rejects_invalid_amounts(alice: User, client: Client) -> None:
    client.force_login(alice)
    answer = client.post("/usage/budgets/set", {"usd_per_day": "-1", "warn_percent": "80"})
    assert answer.status_code == 422
    assert not Limit.objects.filter(user=alice).exists()
