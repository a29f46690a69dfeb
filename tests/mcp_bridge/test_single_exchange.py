"""A call or a list of tools is answered without the SDK's transport, in the SDK's words."""

from typing import Any

import pytest

from accounts.models import User
from mcp_bridge import request_guard
from mcp_bridge.protocol.client_activity import record_activity
from mcp_bridge.protocol.db_threads import DatabaseThreads
from playbooks.models import Playbook
from tests.factories import make_key
from tests.harness.raw_mcp import REVISIONS, comparable, message_of, send_request

READ = {"name": "get_playbook", "arguments": {"max_tokens": 1}}
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("tools/list", {"cursor": "x"}),
    ("tools/call", READ),
    ("tools/call", {"name": "list_playbooks", "arguments": {}}),
    ("tools/call", {"name": "list_playbooks", "arguments": ["x"]}),
    ("tools/call", {"name": "no_such", "arguments": {}}),
    ("tools/call", {"arguments": {}}),
]

every_revision = pytest.mark.parametrize("revision", REVISIONS)


@pytest.fixture
def token(alice: User) -> str:
    return make_key(alice)[1]


@every_revision
def test_it_answers_as_the_transport_of_the_sdk(
    live_url: str, token: str, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = [send_request(live_url, token, revision, *request) for request in REQUESTS]
    monkeypatch.setattr(request_guard, "connection_for", lambda message, request: None)
    by_transport = [send_request(live_url, token, revision, *request) for request in REQUESTS]
    for ours, theirs in zip(own, by_transport, strict=True):
        assert comparable(message_of(ours)) == comparable(message_of(theirs))
        assert ours.status_code == theirs.status_code
        assert ours.headers["content-type"] == theirs.headers["content-type"]


@every_revision
def test_a_stranger_is_told_so_whatever_they_send(live_url: str, revision: str) -> None:
    for request in REQUESTS:
        response = send_request(live_url, "wrong", revision, *request)
        assert response.status_code == 401
        assert "invalid_token" in response.headers["www-authenticate"]


@every_revision
def test_a_call_takes_one_hop_to_a_thread(
    live_url: str, token: str, revision: str, playbook: Playbook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each hop costs a tenth of a millisecond, and wakes another thread."""
    read = {"name": "get_playbook", "arguments": {"playbook_id": str(playbook.pk)}}
    hops: list[object] = []
    run = DatabaseThreads.run

    async def counted(self: DatabaseThreads, work: Any) -> Any:
        # After the first response the client's activity is recorded.
        if getattr(work, "func", None) is not record_activity:
            hops.append(work)
        return await run(self, work)

    monkeypatch.setattr(DatabaseThreads, "run", counted)
    assert send_request(live_url, token, revision, "tools/call", read).status_code == 200
    assert len(hops) == 1


@pytest.mark.parametrize(
    ("revision", "headers"),
    [
        ("2025-11-25", {"Accept": "text/html"}),
        ("2025-11-25", {"Content_Type": "text/plain"}),
        ("1999-01-01", {}),
    ],
)
def test_what_a_request_lacks_is_said_by_the_sdk_to_callers_only(
    live_url: str, token: str, revision: str, headers: dict[str, str]
) -> None:
    call: tuple[str, str, dict[str, Any]] = (revision, "tools/list", {})
    assert send_request(live_url, "wrong", *call, **headers).status_code == 401
    assert send_request(live_url, token, *call, **headers).status_code in {400, 406, 415}
