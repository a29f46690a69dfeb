"""Another tenant's row gets the same answer as a missing row, with every method."""

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from accounts.keys.api_keys import revoke_api_key
from accounts.models import ApiKey, User
from core.security.scopes import KEY_SCOPES, Principal, Scope, granted_scopes
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob, Outcome
from mcp_bridge.tools.definitions import TOOLS
from playbooks.models import Playbook, Version
from tests.factories import add_bullet, make_key, make_outcome, make_playbook
from tests.harness.mcp_requests import Target, on_tools, tool
from tests.harness.raw_mcp import call_rpc, comparable

pytestmark = pytest.mark.postgres

UNKNOWN = Target(str(uuid4()), "No such name", str(uuid4()))
# They name nothing, so they are not in the matrix.
NAMELESS = {"list_playbooks", "create_playbook"}


@pytest.fixture
def target(playbook: Playbook, alice: User) -> Target:
    make_outcome(playbook, alice)
    add_bullet(playbook)  # a rollback to an equal text is refused
    job = trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
    return Target(str(playbook.pk), playbook.name, str(job.pk))


def answers(url: str, key: str, target: Target) -> list[str]:
    return [comparable(call_rpc(url, key, method, params)) for method, params in on_tools(target)]


def revoked(alice: User) -> str:
    key, token = make_key(alice)
    revoke_api_key(key=key, reason="test")
    return token


def expired(alice: User) -> str:
    key, token = make_key(alice)
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(hours=1))
    return token


def test_the_matrix_covers_every_tool() -> None:
    assert {*TOOLS} - NAMELESS == {params["name"] for _method, params in on_tools(UNKNOWN)}


@pytest.mark.parametrize("who", ["charlie", "staff"])
def test_a_stranger_and_staff_get_the_answer_for_a_missing_row(
    live_url: str, target: Target, who: str, request: pytest.FixtureRequest
) -> None:
    key = make_key(request.getfixturevalue(who))[1]
    rows = [model.objects.count() for model in (Playbook, Version, Outcome, EvolutionJob)]
    answered, unknown = answers(live_url, key, target), answers(live_url, key, UNKNOWN)
    assert answered == unknown
    assert not any(part in "".join(answered) for part in ("Fixing tests", "failing test"))
    after = [model.objects.count() for model in (Playbook, Version, Outcome, EvolutionJob)]
    assert after == rows


def test_a_key_of_another_playbook_learns_nothing_of_this_one(
    live_url: str, target: Target, alice: User
) -> None:
    other = make_playbook(alice, name="Other")
    key = make_key(alice, playbook_ids=[other.pk])[1]
    assert answers(live_url, key, target) == answers(live_url, key, UNKNOWN)
    own = tool("list_playbooks", include_starters=False)
    listed = call_rpc(live_url, key, *own)["result"]["structuredContent"]["result"]
    assert [one["name"] for one in listed] == ["Other"]


@pytest.mark.parametrize("make", [revoked, expired], ids=lambda make: make.__name__)
def test_an_inactive_key_gets_the_same_error_everywhere(
    live_url: str, target: Target, alice: User, make: Callable[[User], str]
) -> None:
    answered = {*answers(live_url, make(alice), target)}
    assert len(answered) == 1
    assert "not_authenticated" in answered.pop()


def test_the_owner_gets_a_result_everywhere(live_url: str, target: Target, alice: User) -> None:
    key = make_key(alice)[1]
    for answer in answers(live_url, key, target):
        assert '"isError": true' not in answer
        assert '"error"' not in answer


@pytest.mark.parametrize("scope", KEY_SCOPES)
def test_lists_contain_only_what_the_scopes_allow(
    live_url: str, target: Target, alice: User, scope: Scope
) -> None:
    key, granted = make_key(alice, scopes=[scope])[1], granted_scopes([scope])
    tools = call_rpc(live_url, key, "tools/list", {})["result"]["tools"]
    assert [one["name"] for one in tools] == [n for n in TOOLS if TOOLS[n].scope in granted]


def test_calls_without_the_scope_are_refused(live_url: str, target: Target, alice: User) -> None:
    key = make_key(alice, scopes=["evolve"])[1]
    for method, params in on_tools(target):
        answer = comparable(call_rpc(live_url, key, method, params))
        allowed = params.get("name") == "trigger_evolution"
        assert ("insufficient_scope" in answer) is not allowed, (method, params)
