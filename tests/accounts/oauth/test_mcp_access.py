"""A connected app at the MCP endpoint."""

import httpx2
import pytest

from accounts.models import User
from playbooks.models import Playbook
from tests.factories import make_playbook
from tests.harness.live_server import live_mcp
from tests.harness.oauth_client import OAuthClient
from tests.harness.raw_mcp import REVISIONS, send_request

CREATE = {"name": "create_playbook", "arguments": {"name": "New"}}


@pytest.fixture
def at(live_url: str, alice: User) -> OAuthClient:
    """Alice's app, for the address of the live server."""
    app = OAuthClient(alice)
    app.browser.defaults["HTTP_HOST"] = live_url.removeprefix("http://")
    app.asked = {"resource": f"{live_url}/mcp"}
    return app


def test_an_app_reads_and_writes_as_its_user(live_url: str, at: OAuthClient) -> None:
    mine = make_playbook(at.user)
    agent = live_mcp(live_url, at.tokens()["access_token"])
    answer = agent.ask("get_playbook", playbook_id=str(mine.pk))
    assert answer["id"] == str(mine.pk)


def test_rows_of_others_are_not_found(live_url: str, at: OAuthClient, charlie: User) -> None:
    foreign = make_playbook(charlie)
    agent = live_mcp(live_url, at.tokens()["access_token"])
    assert agent.refused("get_playbook", playbook_id=str(foreign.pk))[0] == "not_found"


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_missing_scope_is_named_with_all_that_are_needed(
    live_url: str, at: OAuthClient, revision: str
) -> None:
    token = at.tokens(scopes="read evolve")["access_token"]
    answer = send_request(live_url, token, revision, "tools/call", CREATE)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "insufficient_scope")
    challenge = answer.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge
    assert 'scope="read write evolve"' in challenge
    assert f'resource_metadata="{live_url}/.well-known/oauth-protected-resource/mcp"' in challenge
    assert not Playbook.objects.exists()


def test_a_disconnected_app_is_challenged_again(live_url: str, at: OAuthClient) -> None:
    token = at.tokens()["access_token"]
    assert send_request(live_url, token, REVISIONS[0], "tools/list", {}).status_code == 200
    at.browser.post(f"/keys/apps/{at.user.connected_apps.get().pk}/disconnect")
    answer = send_request(live_url, token, REVISIONS[0], "tools/list", {})
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_the_api_refuses_the_app_token(live_url: str, at: OAuthClient) -> None:
    headers = {"Authorization": f"Bearer {at.tokens()['access_token']}"}
    with httpx2.Client(trust_env=False, headers=headers, timeout=20) as client:
        assert client.get(f"{live_url}/api/v1/playbooks").status_code == 401
