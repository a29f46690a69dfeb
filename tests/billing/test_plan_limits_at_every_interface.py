"""Plan limits give the same message in pages, REST and MCP; jobs over quota are shown."""

import html

import pytest
from django.conf import LazySettings

from accounts.models import User
from billing.limits.plan_limits import _report_limit, report_rate
from billing.models import Plan
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.outcomes.reporting import RATE_WARNING
from evolution.worker.tasks import run_evolution
from playbooks.models import Playbook
from tests.factories import make_key, make_outcome
from tests.harness.clients import logged_in_client
from tests.harness.interfaces import open_interfaces
from tests.harness.live_server import live_url
from tests.harness.plans import set_limits, subscribe
from tests.harness.rest_client import Rest

__all__ = ["live_url"]

PLAYBOOKS = "The Free plan allows 1 playbook, and you have 1. Archive one"
REPORT = {"task_description": "Mend it", "outcome": "success", "signal": "test"}
KEYS = "The Free plan allows 0 API keys, and you have 0. Revoke one"


@pytest.fixture
def small(billing: Plan, playbook: Playbook) -> Plan:
    set_limits(billing, max_playbooks=1, monthly_evolutions=0)
    return billing


def test_the_playbook_limit_has_the_same_message_at_every_interface(
    live_url: str, alice: User, small: Plan, playbook: Playbook
) -> None:
    for interface in open_interfaces(live_url, alice).values():
        for answer in (interface.create_playbook("Another"), interface.clone_playbook(playbook)):
            assert answer.kind == "conflict"
            assert PLAYBOOKS in html.unescape(answer.text)
    assert Playbook.objects.filter(owner=alice).count() == 1


def test_over_quota_every_interface_takes_reports_and_shows_why_a_job_waits(
    live_url: str, alice: User, small: Plan, playbook: Playbook
) -> None:
    make_outcome(playbook, alice)
    job = trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
    assert run_evolution(str(job.pk)) == "nothing to claim"
    for interface in open_interfaces(live_url, alice).values():
        assert interface.report_outcome(playbook, **REPORT).kind == "ok"
        assert interface.get_playbook(playbook).kind == "ok"
        assert "includes 0 evolutions a month" in interface.get_evolution_status(job.pk).text


def test_over_the_plans_reports_an_hour_every_interface_stores_what_waits(
    live_url: str, alice: User, small: Plan, playbook: Playbook, settings: LazySettings
) -> None:
    settings.EVOLUTION_OUTCOME_THRESHOLD = 2
    set_limits(small, reports_per_hour=1)
    make_outcome(playbook, alice)
    for name, interface in open_interfaces(live_url, alice).items():
        answer = interface.report_outcome(playbook, **REPORT)
        assert answer.kind == "ok"
        assert (RATE_WARNING in answer.text) == (name != "page")
    assert playbook.outcomes.count() == 4
    assert not playbook.jobs.exists()
    assert report_rate(alice) == "1/h"
    subscribe(alice, "pro")
    _report_limit.cache_clear()
    assert report_rate(alice) == "1000/h"


@pytest.mark.parametrize("interface", ["page", "rest"])
def test_the_key_limit_has_the_same_message_in_pages_and_rest(
    alice: User, billing: Plan, interface: str
) -> None:
    set_limits(billing, max_keys=0)
    if interface == "rest":
        answer = Rest.of(alice).post("/auth/api-keys", {"name": "New", "scopes": ["read"]})
        assert answer.json()["error"]["code"] == "plan_limit"
    else:
        browser = logged_in_client(alice)
        answer = browser.post("/keys", {"name": "New", "scopes": ["read"], "days": "90"})
    assert answer.status_code == 409
    assert KEYS in html.unescape(answer.content.decode())
    assert not alice.api_keys.exists()


def test_other_users_keys_and_playbooks_do_not_count(
    charlie: User, small: Plan, playbook: Playbook
) -> None:
    set_limits(small, max_keys=1)
    make_key(playbook.owner or charlie)
    assert make_key(charlie)
    assert Rest.of(charlie).post("/playbooks", {"name": "Mine"}).status_code == 201


def test_staff_have_a_plan_like_everybody(staff: User, small: Plan) -> None:
    assert Rest.of(staff).post("/playbooks", {"name": "Of staff"}).status_code == 201
    assert Rest.of(staff).post("/playbooks", {"name": "Another"}).status_code == 409
