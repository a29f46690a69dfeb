"""Whoever asks for what is not theirs hears what they would hear of a thing that never was."""

from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from accounts.keys.api_keys import revoke_api_key
from accounts.models import ApiKey, User
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob, Outcome
from mcp_bridge.prompts.definitions import PROMPTS
from mcp_bridge.resources import TEMPLATES
from mcp_bridge.tools.definitions import TOOLS
from playbooks.models import Playbook, Version
from tests.factories import make_key, make_outcome, make_playbook
from tests.harness.mcp_requests import Target, all_requests
from tests.harness.raw_mcp import say, told

pytestmark = pytest.mark.postgres

UNKNOWN = Target(str(uuid4()), "No such name", str(uuid4()))
# They name nothing, so they are not in the matrix.
NAMELESS = {"list_playbooks", "create_playbook"}


@pytest.fixture
def thing(playbook: Playbook, alice: User) -> Target:
    make_outcome(playbook, alice)
    job = trigger_evolution(playbook=playbook, by=Principal.of(alice)).job
    return Target(str(playbook.pk), playbook.name, str(job.pk))


def answers(url: str, key: str, thing: Target) -> list[str]:
    """In the protocol's own words, where it wants to hear the address again, too."""
    said = (told(say(url, key, method, params)) for method, params in all_requests(thing))
    return [answer.replace(f"playbook://{thing.playbook_id}", "playbook://it") for answer in said]


def revoked(alice: User) -> str:
    key, token = make_key(alice)
    revoke_api_key(key=key, reason="test")
    return token


def expired(alice: User) -> str:
    key, token = make_key(alice)
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(hours=1))
    return token


def test_the_matrix_knows_every_tool_prompt_and_template() -> None:
    requests = all_requests(UNKNOWN)
    named = {params.get("name") for method, params in requests if method != "completion/complete"}
    refs = [p["ref"] for method, p in requests if method == "completion/complete"]
    assert {*TOOLS, *PROMPTS} - NAMELESS == named - {None}
    assert {*PROMPTS} <= {ref.get("name") for ref in refs}
    assert {template.uri_template for template in TEMPLATES} <= {ref.get("uri") for ref in refs}


@pytest.mark.parametrize("who", ["charlie", "staff"])
def test_a_stranger_and_staff_hear_of_a_thing_what_they_hear_of_none(
    live_url: str, thing: Target, who: str, request: pytest.FixtureRequest
) -> None:
    key = make_key(request.getfixturevalue(who))[1]
    rows = [model.objects.count() for model in (Playbook, Version, Outcome, EvolutionJob)]
    heard, unknown = answers(live_url, key, thing), answers(live_url, key, UNKNOWN)
    assert heard == unknown
    assert not any(part in "".join(heard) for part in ("Fixing tests", "failing test"))
    after = [model.objects.count() for model in (Playbook, Version, Outcome, EvolutionJob)]
    assert after == rows


def test_a_key_of_another_playbook_hears_nothing_of_this_one(
    live_url: str, thing: Target, alice: User
) -> None:
    other = make_playbook(alice, name="Other")
    key = make_key(alice, playbook_ids=[other.pk])[1]
    assert answers(live_url, key, thing) == answers(live_url, key, UNKNOWN)
    listed = say(live_url, key, "resources/list", {})["result"]["resources"]
    assert [one["name"] for one in listed] == ["Other"]


@pytest.mark.parametrize("make", [revoked, expired], ids=lambda make: make.__name__)
def test_a_dead_key_hears_the_same_sentence_everywhere(
    live_url: str, thing: Target, alice: User, make: Callable[[User], str]
) -> None:
    heard = {*answers(live_url, make(alice), thing)}
    assert len(heard) == 1
    assert "not_authenticated" in heard.pop()


def test_the_owner_is_answered_everywhere(live_url: str, thing: Target, alice: User) -> None:
    key = make_key(alice)[1]
    for answer in answers(live_url, key, thing):
        assert '"isError": true' not in answer
        assert '"error"' not in answer
        assert '"values": []' not in answer


@pytest.mark.parametrize("scope", ["read", "write", "evolve"])
def test_a_key_is_shown_only_what_its_scope_allows(
    live_url: str, thing: Target, alice: User, scope: str
) -> None:
    key = make_key(alice, scopes=[scope])[1]
    tools, prompts, templates, resources = (
        say(live_url, key, f"{kind}/list", {})["result"][field]
        for kind, field in (
            ("tools", "tools"), ("prompts", "prompts"),
            ("resources/templates", "resourceTemplates"), ("resources", "resources"),
        )
    )  # fmt: skip
    assert [one["name"] for one in tools] == [n for n in TOOLS if TOOLS[n].scope == scope]
    assert [one["name"] for one in prompts] == [n for n in PROMPTS if PROMPTS[n].scope == scope]
    assert (len(templates), len(resources)) == ((2, 1) if scope == "read" else (0, 0))


def test_what_a_key_may_not_use_is_refused_when_it_is_called_all_the_same(
    live_url: str, thing: Target, alice: User
) -> None:
    key = make_key(alice, scopes=["evolve"])[1]
    for method, params in all_requests(thing):
        answer = told(say(live_url, key, method, params))
        allowed = params.get("name") == "trigger_evolution"
        assert ("insufficient_scope" in answer) is not allowed, (method, params)
