"""Client activity is recorded for the owner of the credential at once, and for nobody else."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.keys.api_keys import revoke_api_key
from accounts.keys.jwt_tokens import issue_tokens
from accounts.keys.key_format import KEY_PREFIX, mint
from accounts.models import ApiKey, User
from core.security.scopes import Principal
from mcp_bridge.models import ClientActivity
from mcp_bridge.protocol import client_activity
from playbooks.models import Playbook
from tests.factories import make_key
from tests.harness.live_server import live_mcp
from tests.harness.raw_mcp import REVISIONS, post, send_request
from tests.harness.waiting import wait_until


@pytest.fixture(autouse=True)
def fresh_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has just started."""
    monkeypatch.setattr(
        client_activity,
        "write_throttle",
        client_activity.Throttle(client_activity.WRITE_INTERVAL_SECONDS),
    )


def newest() -> ClientActivity:
    """The only row, once it is written: that happens after the response."""
    wait_until(ClientActivity.objects.exists)
    return ClientActivity.objects.get()


def refusal_of(live_url: str, token: str, **headers: str) -> str:
    post(live_url, token, User_Agent="probe/1.0 (x)", **headers)
    activity = newest()
    assert (activity.is_refused, activity.client, activity.accepted_at) == (True, "probe 1.0", None)
    return activity.refusal


@pytest.mark.parametrize("revision", (REVISIONS[0], REVISIONS[-1]))
def test_the_first_call_is_recorded_with_client_and_tool(
    live_url: str, alice: User, revision: str
) -> None:
    key, token = make_key(alice)
    send_request(
        live_url, token, revision, "tools/call", {"name": "list_playbooks", "arguments": {}}
    )
    activity = newest()
    assert (activity.user, activity.api_key, activity.tool) == (alice, key, "list_playbooks")
    assert not activity.is_refused
    expected = "raw 1" if revision == REVISIONS[0] else "python-httpx2"
    assert activity.client.startswith(expected)


def test_a_login_is_recorded_without_a_key(live_url: str, alice: User, playbook: Playbook) -> None:
    live_mcp(live_url, issue_tokens(user=alice).access).ask("list_playbooks")
    wait_until(ClientActivity.objects.filter(tool="list_playbooks").exists)
    activity = ClientActivity.objects.get(tool="list_playbooks")
    assert (activity.api_key, activity.credential) == (None, "login")


def test_a_revoked_key_is_shown_to_its_owner(live_url: str, alice: User) -> None:
    key, token = make_key(alice)
    revoke_api_key(key=key, reason="test")
    assert refusal_of(live_url, token) == "key_revoked"


def test_a_wrong_host_is_shown_to_its_owner(live_url: str, alice: User) -> None:
    assert refusal_of(live_url, make_key(alice)[1], Host="evil.example") == "wrong_host"


def noted(token: str, refusal: str = "not_authenticated") -> str:
    """The refusal code that the owner of the key sees."""
    client_activity.record_activity(client_activity.RequestActivity(token=token, refusal=refusal))
    return ClientActivity.objects.get().refusal


def test_an_expired_key_is_shown_to_its_owner(alice: User) -> None:
    key, token = make_key(alice)
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(hours=1))
    assert noted(token) == "key_expired"


def test_a_truncated_key_is_shown_to_its_owner(alice: User) -> None:
    assert noted(make_key(alice)[1][:-7]) == "wrong_secret"


def test_a_key_prefix_alone_cannot_create_client_names(alice: User) -> None:
    start = make_key(alice)[1][:-7]
    for number in range(3):
        made_up = client_activity.RequestActivity(
            token=start, client=f"Your bank {number}", tool="pay"
        )
        client_activity.record_activity(made_up)
    activity = ClientActivity.objects.get()
    assert (activity.client, activity.tool, activity.refusal) == ("", "", "wrong_secret")


def test_invented_client_names_share_one_throttle(alice: User) -> None:
    start = make_key(alice)[1][:-7]
    due = [
        client_activity.should_record(client_activity.RequestActivity(token=start, client=f"{n}"))
        for n in range(3)
    ]
    assert due == [True, False, False]


def test_a_wrong_origin_is_shown_to_its_owner(alice: User) -> None:
    assert noted(make_key(alice)[1], "wrong_origin") == "wrong_origin"


def test_a_missing_scope_is_shown_to_its_owner(
    live_url: str, alice: User, playbook: Playbook
) -> None:
    agent = live_mcp(live_url, make_key(alice, scopes=["read"])[1])
    agent.call("create_playbook", name="New")
    wait_until(ClientActivity.objects.filter(refusal="insufficient_scope").exists)


def test_an_unknown_token_leaves_no_trace(live_url: str, alice: User) -> None:
    strange = ("x", "${ACE_API_KEY}", f"{KEY_PREFIX}{'0' * 12}_x", "a.b.c", mint().token)
    for token in strange:
        assert post(live_url, token).status_code == 401
    post(live_url, make_key(alice)[1])
    assert newest().refusal == ""


def test_a_key_that_works_again_is_no_longer_shown_as_refused(live_url: str, alice: User) -> None:
    _, token = make_key(alice)
    post(live_url, token[:-7], User_Agent="probe/1.0")
    wait_until(ClientActivity.objects.exists)
    post(live_url, token, User_Agent="probe/1.0")
    wait_until(ClientActivity.objects.exclude(accepted_at=None).exists)
    assert not newest().is_refused


def test_many_calls_cause_one_write(
    live_url: str, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[client_activity.RequestActivity] = []
    monkeypatch.setattr("mcp_bridge.request_guard.record_activity", written.append)
    monkeypatch.setattr(
        client_activity, "write_throttle", client_activity.Throttle(step=1000)
    )  # however slow the calls are
    _, token = make_key(alice)
    for _ in range(5):
        send_request(live_url, token, REVISIONS[0], "tools/list", {})
    wait_until(lambda: bool(written))
    assert len(written) == 1


def test_the_clients_of_a_user_are_bounded(alice: User) -> None:
    key = make_key(alice)[0]
    for number in range(client_activity.MAX_ROWS_PER_USER + 5):
        by = Principal(user=alice, scopes=frozenset(), api_key=key)
        client_activity.record_activity(
            client_activity.RequestActivity(principal=by, client=f"program {number}")
        )
    assert ClientActivity.objects.count() == client_activity.MAX_ROWS_PER_USER
    assert client_activity.recent_activity(user=alice)[0].client == f"program {number}"


def test_a_stranger_sees_no_activity_of_others(alice: User, charlie: User, staff: User) -> None:
    by = Principal(user=alice, scopes=frozenset())
    client_activity.record_activity(client_activity.RequestActivity(principal=by))
    assert len(client_activity.recent_activity(user=alice)) == 1
    assert (
        client_activity.recent_activity(user=charlie)
        == client_activity.recent_activity(user=staff)
        == []
    )


def test_the_throttle_forgets_old_keys() -> None:
    throttle = client_activity.Throttle(step=1000)
    assert [throttle.allows("a"), throttle.allows("a"), throttle.allows("b")] == [True, False, True]
    for number in range(client_activity.MAX_THROTTLED_KEYS):
        throttle.allows(number)
    assert throttle.allows("a")
