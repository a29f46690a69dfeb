"""Authentication at /mcp, and what a credential allows."""

from datetime import timedelta

import httpx2
import pytest
from django.utils import timezone

from accounts.keys.api_keys import revoke_api_key
from accounts.keys.jwt_tokens import issue_tokens
from accounts.models import ApiKey, User
from core.security.scopes import KEY_SCOPES, granted_scopes
from mcp_bridge.tools.definitions import TOOLS
from playbooks.models import Playbook
from tests.factories import make_key, make_playbook
from tests.harness.live_server import live_mcp
from tests.harness.raw_mcp import REVISIONS, message_of, post, send_request

ARGUMENTS: dict[str, dict[str, object]] = {
    "report_outcome": {"task_description": "Build", "outcome": "success"},
    "create_playbook": {"name": "New"},
    "rollback_playbook": {"version": 1},
}


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer x", "Basic YTpi", "bearer ace_live_0", "Token ace_live_0"],
)
def test_no_valid_credential_is_challenged(live_url: str, authorization: str) -> None:
    response = post(live_url, "", Authorization=authorization)
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "not_authenticated"
    challenge = response.headers["www-authenticate"]
    assert challenge.startswith('Bearer realm="ACE Platform", scope="read report"')
    assert ('error="invalid_token"' in challenge) is bool(authorization)
    documents = f"{live_url}/.well-known/oauth-protected-resource/mcp"
    assert challenge.endswith(f'resource_metadata="{documents}"')


def test_every_wrong_key_gets_the_same_body(live_url: str, alice: User) -> None:
    revoked, expired = make_key(alice), make_key(alice)
    revoke_api_key(key=revoked[0], reason="test")
    ApiKey.objects.filter(pk=expired[0].pk).update(expires_at=timezone.now() - timedelta(hours=1))
    foreign = "ace_live_" + "0" * 12 + "_" + "0" * 49
    bodies = []
    for token in (revoked[1], expired[1], foreign):
        response = post(live_url, token)
        assert response.status_code == 401
        bodies.append(response.json()["error"])
    assert bodies[0] == bodies[1] == bodies[2]


def test_a_key_in_the_url_is_ignored(live_url: str, alice: User) -> None:
    token = make_key(alice)[1]
    with httpx2.Client(trust_env=False, timeout=20) as client:
        response = client.post(f"{live_url}/mcp?api_key={token}&token={token}", json={})
    assert response.status_code == 401


def test_two_authorization_headers_are_refused(live_url: str, alice: User) -> None:
    given = [("Authorization", f"Bearer {make_key(alice)[1]}")] * 2
    with httpx2.Client(trust_env=False, timeout=20) as client:
        assert client.post(f"{live_url}/mcp", json={}, headers=given).status_code == 401


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_revoked_key_stops_at_the_next_request(live_url: str, alice: User, revision: str) -> None:
    key, token = make_key(alice)
    assert send_request(live_url, token, revision, "tools/list", {}).status_code == 200
    revoke_api_key(key=key, reason="test")
    assert send_request(live_url, token, revision, "tools/list", {}).status_code == 401


def test_an_inactive_user_is_refused(live_url: str, alice: User) -> None:
    token = make_key(alice)[1]
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert post(live_url, token).status_code == 401


def test_our_access_token_is_accepted_at_mcp(
    live_url: str, alice: User, playbook: Playbook
) -> None:
    agent = live_mcp(live_url, issue_tokens(user=alice).access)
    assert [item["id"] for item in agent.ask("list_playbooks")] == [str(playbook.pk)]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_missing_scope_is_named_in_the_error(
    tool: str, live_url: str, alice: User, playbook: Playbook
) -> None:
    needed = TOOLS[tool].scope
    others = [scope for scope in KEY_SCOPES if needed not in granted_scopes([scope])]
    agent = live_mcp(live_url, make_key(alice, scopes=others)[1])
    arguments = dict(ARGUMENTS.get(tool, {}))
    if tool not in {"list_playbooks", "create_playbook"}:
        name = "job_id" if tool == "get_evolution_status" else "playbook_id"
        arguments[name] = str(playbook.pk)
    code, text = agent.refused(tool, **arguments)
    assert code == "insufficient_scope"
    assert f"`{needed}`" in text
    assert Playbook.objects.count() == 1


def test_a_key_limited_to_a_playbook_reaches_no_other(
    live_url: str, alice: User, playbook: Playbook
) -> None:
    other = make_playbook(alice, name="Other")
    agent = live_mcp(live_url, make_key(alice, playbook_ids=[playbook.pk])[1])
    assert [item["id"] for item in agent.ask("list_playbooks")] == [str(playbook.pk)]
    assert agent.ask("get_playbook", playbook_id=str(playbook.pk))["version"] == 1
    for tool in ("get_playbook", "list_versions", "trigger_evolution", "clone_playbook"):
        assert agent.refused(tool, playbook_id=str(other.pk))[0] == "not_found"


@pytest.mark.parametrize(("header", "status"), [("Host", 421), ("Origin", 403)])
def test_a_wrong_host_or_origin_is_refused(
    live_url: str, alice: User, header: str, status: int
) -> None:
    response = post(live_url, make_key(alice)[1], **{header: "http://evil.example"})
    assert response.status_code == status


@pytest.mark.parametrize("origin", ["https://app.example.org", ""])
def test_a_listed_origin_and_our_own_are_accepted(
    live_url: str, alice: User, origin: str, settings: object
) -> None:
    settings.CORS_ALLOWED_ORIGINS = ["https://app.example.org"]  # type: ignore[attr-defined]  # pytest-django's fixture has no public type
    response = post(live_url, make_key(alice)[1], Origin=origin or live_url)
    assert message_of(response)["error"]["code"] == -32600


def test_a_stream_is_never_opened(live_url: str, alice: User) -> None:
    headers = {"Authorization": f"Bearer {make_key(alice)[1]}", "Accept": "text/event-stream"}
    with httpx2.Client(trust_env=False, headers=headers, timeout=20) as client:
        for method in ("GET", "DELETE", "PUT"):
            response = client.request(method, f"{live_url}/mcp")
            assert (response.status_code, response.headers["allow"]) == (405, "POST")
