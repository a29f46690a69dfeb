"""Plan limits on playbooks and API keys, and the retention of traces."""

from datetime import timedelta

import pytest
from pytest_django import Settings

from accounts.keys.api_keys import revoke_api_key, rotate_api_key
from accounts.models import ApiKey, User
from billing.limits.plan_limits import PlanLimitReached
from billing.models import BillingAccount, Plan
from billing.plans.entitlements import keep_until, make_default
from core.clock import database_now
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import AgentSession, Outcome
from evolution.outcomes.retention import blank_old_traces, blank_old_transcripts
from evolution.sessions.recording import open_session
from evolution.worker.tasks import run_evolution
from playbooks.models import Playbook
from playbooks.services import creation
from playbooks.services.settings import archive_playbook, restore_playbook, update_playbook
from tests.factories import ACE_TEXT, make_key, make_outcome, make_playbook
from tests.harness.concurrency import run_concurrently
from tests.harness.plans import set_limits, subscribe


@pytest.fixture
def one(billing: Plan, playbook: Playbook) -> Plan:
    """A plan with one playbook, which alice has, and one key, which she has not."""
    set_limits(billing, max_playbooks=1, max_keys=1)
    return billing


@pytest.mark.parametrize("verb", ["create", "import", "clone", "restore"])
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
    subscribe(alice, "scale")
    assert make_playbook(alice, name="Another")


def test_playbooks_above_a_smaller_limit_keep_working(
    alice: User, one: Plan, playbook: Playbook
) -> None:
    set_limits(one, max_playbooks=0)
    assert make_outcome(playbook, alice).pk
    assert update_playbook(playbook=playbook, by=Principal.of(alice), name="Renamed")


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
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
    for plan in Plan.objects.all():
        set_limits(plan, max_playbooks=0, max_keys=0)
    assert make_playbook(alice, name="Another")
    assert make_key(alice)


def process(outcome: Outcome, *, days_ago: int) -> Outcome:
    """Process the outcome some days ago, under the plan that its owner has now."""
    at, owner = database_now() - timedelta(days=days_ago), outcome.playbook.owner
    assert owner is not None
    until = keep_until(owner.pk, at)
    Outcome.objects.filter(pk=outcome.pk).update(processed_at=at, keep_until=until)
    return outcome


@pytest.fixture
def trace(playbook: Playbook, alice: User) -> Outcome:
    return make_outcome(playbook, alice, reasoning_trace="what I did")


@pytest.mark.parametrize(("setting", "blanked"), [(180, 1), (0, 1), (35, 1)])
def test_a_plan_keeps_traces_for_fewer_days_than_the_settings(
    trace: Outcome, billing: Plan, settings: Settings, setting: int, blanked: int
) -> None:
    settings.TRACE_RETENTION_DAYS = setting
    process(trace, days_ago=40)
    assert blank_old_traces() == blanked


def test_the_shorter_retention_of_the_settings_applies(
    trace: Outcome, billing: Plan, alice: User, settings: Settings
) -> None:
    settings.TRACE_RETENTION_DAYS = 35
    subscribe(alice, "pro")
    process(trace, days_ago=40)
    assert blank_old_traces() == 1


@pytest.mark.databases
@pytest.mark.parametrize("change", ["smaller plan", "shorter", "made default", "unpaid"])
def test_no_change_deletes_what_a_plan_has_promised_to_keep(
    trace: Outcome, billing: Plan, alice: User, staff: User, change: str
) -> None:
    account = subscribe(alice, "pro")
    process(trace, days_ago=40)
    if change == "smaller plan":
        BillingAccount.objects.update(plan=None, status="canceled")
    elif change == "shorter":
        Plan.objects.update(retention_days=1)
    elif change == "made default":
        smaller = Plan.objects.create(slug="less", name="Less", retention_days=20)
        make_default(plan=smaller, by=Principal.of(staff))
        withdraw = BillingAccount.objects.filter(pk=account.pk)
        withdraw.update(plan=None, status="canceled")
    else:
        BillingAccount.objects.update(status="past_due", grace_until=database_now())
    assert blank_old_traces() == 0
    Outcome.objects.update(keep_until=database_now() - timedelta(minutes=1))
    assert blank_old_traces() == 1


def test_turning_billing_on_shortens_nothing_that_is_stored(
    trace: Outcome, billing: Plan, settings: Settings
) -> None:
    settings.BILLING_ENABLED = False
    process(trace, days_ago=40)
    settings.BILLING_ENABLED = True
    assert blank_old_traces() == 0


def test_an_evolution_says_how_long_its_reports_are_kept(
    trace: Outcome, billing: Plan, alice: User
) -> None:
    job = trigger_evolution(playbook=trace.playbook, by=Principal.of(alice)).job
    assert run_evolution(str(job.pk)) == "completed"
    trace.refresh_from_db()
    assert trace.keep_until and trace.processed_at
    assert trace.keep_until - trace.processed_at == timedelta(days=30)


def test_a_transcript_is_kept_as_the_plan_says_when_it_was_written(
    billing: Plan, alice: User
) -> None:
    session = open_session(by=Principal.of(alice))
    assert session.keep_until
    AgentSession.objects.update(keep_until=database_now() - timedelta(days=1))
    assert blank_old_transcripts() == 1


def test_while_billing_is_off_no_plan_deletes_traces(trace: Outcome) -> None:
    process(trace, days_ago=40)
    assert blank_old_traces() == 0
