"""Plan limits on playbooks and API keys, and the retention of traces."""

from datetime import timedelta

import pytest
from django.core import mail
from pytest_django import Settings

from accounts.keys.api_keys import revoke_api_key, rotate_api_key
from accounts.models import ApiKey, User
from billing.limits.plan_limits import PlanLimitReached
from billing.models import BillingAccount, Plan, PlanActivation
from billing.plans.complimentary_plans import grant_plan, make_default, withdraw_plan
from billing.plans.retention_notices import retention_starts_at
from billing.plans.summary import summarize_plan
from core.clock import database_now
from core.security.scopes import Principal
from evolution.models import Outcome
from evolution.outcomes.retention import blank_old_traces, notify_of_retention
from playbooks.models import Playbook
from playbooks.services import creation
from playbooks.services.settings import archive_playbook, restore_playbook, update_playbook
from tests.factories import ACE_TEXT, make_key, make_outcome, make_playbook, make_user
from tests.harness.concurrency import run_concurrently
from tests.harness.plans import set_limits, subscribe


@pytest.fixture
def one(billing: Plan, playbook: Playbook) -> Plan:
    """A plan with one playbook, which alice has, and one key, which she has not."""
    set_limits(billing, max_playbooks=1, max_keys=1)
    return billing


@pytest.mark.parametrize("verb", ["create", "import", "clone", "restore"])
@pytest.mark.databases
def test_every_way_to_create_a_playbook_checks_the_limit(
    alice: User, one: Plan, playbook: Playbook, verb: str
) -> None:
    by = Principal.of(alice)
    old = Playbook.objects.create(owner=alice, name="Old", status="archived")
    ways = {
        "create": lambda: creation.create_playbook(by=by, name="Another"),
        "import": lambda: creation.import_playbook(by=by, name="Another", content=ACE_TEXT),
        "clone": lambda: creation.clone_playbook(playbook=playbook, by=by),
        "restore": lambda: restore_playbook(playbook=old, by=by),
    }
    with pytest.raises(PlanLimitReached, match="The Free plan allows 1 playbook, and you have 1"):
        ways[verb]()
    assert Playbook.objects.filter(owner=alice, status="active").count() == 1


def test_archiving_a_playbook_makes_room_for_another(
    alice: User, one: Plan, playbook: Playbook
) -> None:
    archive_playbook(playbook=playbook, by=Principal.of(alice))
    assert make_playbook(alice, name="Another")


def test_a_larger_plan_allows_more_at_once(alice: User, one: Plan) -> None:
    subscribe(alice, "team")
    assert make_playbook(alice, name="Another")


def test_playbooks_above_a_smaller_limit_keep_working(
    alice: User, one: Plan, playbook: Playbook
) -> None:
    set_limits(one, max_playbooks=0)
    assert make_outcome(playbook, alice).pk
    assert update_playbook(playbook=playbook, by=Principal.of(alice), name="Renamed")


@pytest.mark.django_db(transaction=True)
@pytest.mark.databases
def test_ten_concurrent_creations_respect_the_limit(alice: User, billing: Plan) -> None:
    set_limits(billing, max_playbooks=3)

    def try_one(number: int) -> bool:
        try:
            return bool(make_playbook(alice, name=f"Number {number}"))
        except PlanLimitReached:
            return False

    assert sum(run_concurrently(10, try_one)) == Playbook.objects.filter(owner=alice).count() == 3


def test_a_key_above_the_limit_is_refused_until_one_is_revoked(alice: User, one: Plan) -> None:
    key, _ = make_key(alice)
    with pytest.raises(PlanLimitReached, match="allows 1 API key, and you have 1. Revoke one"):
        make_key(alice)
    revoke_api_key(key=key, reason="")
    assert make_key(alice)


def test_a_key_can_be_rotated_at_the_limit_and_counts_once(alice: User, one: Plan) -> None:
    set_limits(one, max_keys=2)
    key, _ = make_key(alice)
    rotate_api_key(key=key)
    assert make_key(alice)
    with pytest.raises(PlanLimitReached):
        make_key(alice)
    assert ApiKey.objects.usable().filter(user=alice).count() == 3


def test_while_billing_is_off_there_is_no_limit(alice: User, playbook: Playbook) -> None:
    Plan.objects.update(max_playbooks=0, max_keys=0)
    assert make_playbook(alice, name="Another")
    assert make_key(alice)


@pytest.fixture
def old_trace(playbook: Playbook, alice: User) -> Outcome:
    """An outcome whose trace was used 40 days ago."""
    outcome = make_outcome(playbook, alice, reasoning_trace="what I did")
    long_ago = database_now() - timedelta(days=40)
    Outcome.objects.update(processed_at=long_ago)
    return outcome


@pytest.mark.parametrize("days", [180, 0])
@pytest.mark.databases
def test_a_plan_keeps_traces_for_fewer_days_than_the_settings(
    old_trace: Outcome, billing: Plan, settings: Settings, days: int
) -> None:
    settings.TRACE_RETENTION_DAYS = days
    set_limits(billing, retention_days=30)
    assert blank_old_traces() == 1


def test_the_shorter_retention_of_the_settings_applies(
    old_trace: Outcome, billing: Plan, settings: Settings
) -> None:
    settings.TRACE_RETENTION_DAYS = 35
    set_limits(billing, retention_days=100)
    assert blank_old_traces() == 1


def test_a_larger_plan_keeps_traces_for_longer(
    old_trace: Outcome, billing: Plan, alice: User
) -> None:
    subscribe(alice, "pro")
    assert blank_old_traces() == 0


def test_a_plan_that_has_just_ended_deletes_nothing_yet(
    old_trace: Outcome, billing: Plan, alice: User
) -> None:
    account = grant_plan(user=alice, plan=Plan.objects.get(slug="pro"), by=Principal.of(alice))
    withdraw_plan(account=account, by=Principal.of(alice))
    assert blank_old_traces() == 0
    BillingAccount.objects.update(previous_plan_ended_at=database_now() - timedelta(days=31))
    assert blank_old_traces() == 1


def test_a_change_to_a_smaller_plan_deletes_nothing_yet(
    old_trace: Outcome, billing: Plan, alice: User
) -> None:
    pro, team = (Plan.objects.get(slug=slug) for slug in ("pro", "team"))
    set_limits(pro, retention_days=30)
    for plan in (team, pro):
        grant_plan(user=alice, plan=plan, by=Principal.of(alice))
    assert blank_old_traces() == 0


@pytest.mark.parametrize(("days", "blanked"), [(-1, 0), (3, 0), (31, 1)])
def test_traces_are_kept_for_a_while_after_the_grace_of_a_failed_payment(
    old_trace: Outcome, billing: Plan, alice: User, days: int, blanked: int
) -> None:
    subscribe(alice, "pro", status="past_due", grace_until=database_now() - timedelta(days=days))
    assert blank_old_traces() == blanked


def test_turning_billing_on_deletes_nothing_within_the_notice_period(
    old_trace: Outcome, billing: Plan
) -> None:
    PlanActivation.objects.all().delete()
    assert blank_old_traces() == 0
    PlanActivation.objects.update(activated_at=database_now() - timedelta(days=31))
    assert blank_old_traces() == 1


@pytest.mark.parametrize("how", ["off", "unseen"])
def test_turning_billing_on_again_restarts_the_notice_period(
    old_trace: Outcome, billing: Plan, settings: Settings, how: str
) -> None:
    if how == "off":
        settings.BILLING_ENABLED = False
        blank_old_traces()
        settings.BILLING_ENABLED = True
    PlanActivation.objects.update(last_seen_at=database_now() - timedelta(days=3))
    assert blank_old_traces() == 0


def test_existing_users_get_one_retention_notice(
    playbook: Playbook, alice: User, charlie: User, billing: Plan
) -> None:
    PlanActivation.objects.all().delete()
    assert (notify_of_retention(), notify_of_retention()) == (1, 0)
    (email,) = mail.outbox
    assert email.to == [alice.email]
    assert "30 days" in email.subject
    assert f"{database_now() + timedelta(days=30):%-d %B %Y}" in email.body


def test_a_server_that_was_off_for_days_notifies_nobody_twice(
    playbook: Playbook, alice: User, billing: Plan
) -> None:
    PlanActivation.objects.all().delete()
    notify_of_retention()
    PlanActivation.objects.update(last_seen_at=database_now() - timedelta(days=3))
    late = make_playbook(make_user("late@example.org"))
    assert (notify_of_retention(), len(mail.outbox)) == (0, 1)
    begins = retention_starts_at(database_now())
    assert late and begins and begins > database_now() + timedelta(days=29)


@pytest.mark.parametrize("how", ["changed", "made_default"])
def test_a_shorter_retention_applies_after_the_notice_period(
    old_trace: Outcome, billing: Plan, alice: User, staff: User, how: str
) -> None:
    shorten(billing, how, by=staff)
    assert (blank_old_traces(), notify_of_retention(), notify_of_retention()) == (0, 1, 0)
    begins = summarize_plan(user=alice).retention_starts_at
    assert begins and f"{begins:%-d %B %Y}" in mail.outbox[0].body
    Plan.objects.update(retention_shortened_at=database_now() - timedelta(days=31))
    assert (blank_old_traces(), summarize_plan(user=alice).retention_starts_at) == (1, None)


def shorten(plan: Plan, how: str, *, by: User) -> None:
    """Shorten the retention from 180 days, which keeps the old trace, to 20."""
    set_limits(plan, retention_days=180)
    plan.refresh_from_db()
    if how == "made_default":
        smaller = Plan.objects.create(slug="less", name="Less", retention_days=20)
        make_default(plan=smaller, by=Principal.of(by))
        return
    plan.retention_days = 20
    assert plan.shorten_retention(previous=180, now=database_now())
    plan.save()


@pytest.mark.databases
def test_two_changes_within_the_notice_period_keep_the_longest_retention(billing: Plan) -> None:
    now = database_now()
    for previous, days in ((90, 60), (60, 30)):
        billing.retention_days = days
        assert billing.shorten_retention(previous=previous, now=now)
    assert billing.retention_days_at(now) == 90
    billing.retention_days = 100
    assert not billing.shorten_retention(previous=30, now=now)
    assert (
        billing.retention_days_at(now),
        billing.retention_days_at(now + timedelta(days=31)),
    ) == (100, 100)


def test_the_summary_says_when_retention_starts(alice: User, billing: Plan) -> None:
    assert summarize_plan(user=alice).retention_starts_at is None
    PlanActivation.objects.all().delete()
    assert summarize_plan(user=alice).retention_starts_at


def test_while_billing_is_off_no_plan_deletes_traces(old_trace: Outcome) -> None:
    assert blank_old_traces() == 0
