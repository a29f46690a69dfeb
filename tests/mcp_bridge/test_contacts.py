"""Who came to the door: noted for the owner of the credential, within one call, for nobody else."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.keys import BRAND, mint
from accounts.models import ApiKey, User
from accounts.scopes import Principal
from accounts.services import issue_tokens, revoke_api_key
from mcp_bridge import contacts
from mcp_bridge.models import AgentContact
from playbooks.models import Playbook
from tests.config.waiting import wait_until
from tests.factories import make_key
from tests.live import live_mcp
from tests.mcp_bridge.raw import REVISIONS, ask, post


@pytest.fixture(autouse=True)
def fresh_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has just started."""
    monkeypatch.setattr(contacts, "pace", contacts.Pace(contacts.STEP_SECONDS))


def newest() -> AgentContact:
    """The one contact, once it is written: that happens after the answer."""
    wait_until(AgentContact.objects.exists)
    return AgentContact.objects.get()


def refusal_of(live_url: str, token: str, **headers: str) -> str:
    post(live_url, token, User_Agent="probe/1.0 (x)", **headers)
    contact = newest()
    assert (contact.is_refused, contact.client, contact.let_in_at) == (True, "probe 1.0", None)
    return contact.refusal


@pytest.mark.parametrize("revision", (REVISIONS[0], REVISIONS[-1]))
def test_the_first_call_is_noted_with_program_and_tool(
    live_url: str, alice: User, revision: str
) -> None:
    key, token = make_key(alice)
    ask(live_url, token, revision, "tools/call", {"name": "list_playbooks", "arguments": {}})
    contact = newest()
    assert (contact.user, contact.api_key, contact.tool) == (alice, key, "list_playbooks")
    assert not contact.is_refused
    expected = "raw 1" if revision == REVISIONS[0] else "python-httpx2"
    assert contact.client.startswith(expected)


def test_a_login_is_noted_without_a_key(live_url: str, alice: User, playbook: Playbook) -> None:
    live_mcp(live_url, issue_tokens(user=alice).access).ask("list_playbooks")
    wait_until(AgentContact.objects.filter(tool="list_playbooks").exists)
    contact = AgentContact.objects.get(tool="list_playbooks")
    assert (contact.api_key, contact.credential) == (None, "login")


def test_a_revoked_key_is_told_to_its_owner(live_url: str, alice: User) -> None:
    key, token = make_key(alice)
    revoke_api_key(key=key, reason="test")
    assert refusal_of(live_url, token) == "key_revoked"


def test_a_wrong_host_is_told_to_its_owner(live_url: str, alice: User) -> None:
    assert refusal_of(live_url, make_key(alice)[1], Host="evil.example") == "wrong_host"


def noted(token: str, refusal: str = "not_authenticated") -> str:
    """The code that the owner of the key is told, as the door notes a refusal."""
    contacts.note_contact(contacts.Contact(token=token, refusal=refusal))
    return AgentContact.objects.get().refusal


def test_an_expired_key_is_told_to_its_owner(alice: User) -> None:
    key, token = make_key(alice)
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(hours=1))
    assert noted(token) == "key_expired"


def test_a_key_that_was_cut_in_copying_is_told_to_its_owner(alice: User) -> None:
    assert noted(make_key(alice)[1][:-7]) == "wrong_secret"


def test_who_knows_the_start_of_a_key_cannot_make_programs_up(alice: User) -> None:
    start = make_key(alice)[1][:-7]
    for number in range(3):
        made_up = contacts.Contact(token=start, client=f"Your bank {number}", tool="pay")
        contacts.note_contact(made_up)
    contact = AgentContact.objects.get()
    assert (contact.client, contact.tool, contact.refusal) == ("", "", "wrong_secret")


def test_made_up_names_do_not_hurry_the_pace(alice: User) -> None:
    start = make_key(alice)[1][:-7]
    due = [contacts.is_due(contacts.Contact(token=start, client=f"{n}")) for n in range(3)]
    assert due == [True, False, False]


def test_a_wrong_origin_is_told_to_its_owner(alice: User) -> None:
    assert noted(make_key(alice)[1], "wrong_origin") == "wrong_origin"


def test_a_missing_scope_is_told_to_its_owner(
    live_url: str, alice: User, playbook: Playbook
) -> None:
    agent = live_mcp(live_url, make_key(alice, scopes=["read"])[1])
    agent.call("create_playbook", name="New")
    wait_until(AgentContact.objects.filter(refusal="insufficient_scope").exists)


def test_an_unknown_token_leaves_no_trace(live_url: str, alice: User) -> None:
    strange = ("x", "${ACE_API_KEY}", f"{BRAND}{'0' * 12}_x", "a.b.c", mint().token)
    for token in strange:
        assert post(live_url, token).status_code == 401
    post(live_url, make_key(alice)[1])
    assert newest().refusal == ""


def test_a_key_that_works_again_is_no_longer_shown_as_refused(live_url: str, alice: User) -> None:
    _, token = make_key(alice)
    post(live_url, token[:-7], User_Agent="probe/1.0")
    wait_until(AgentContact.objects.exists)
    post(live_url, token, User_Agent="probe/1.0")
    wait_until(AgentContact.objects.exclude(let_in_at=None).exists)
    assert not newest().is_refused


def test_many_calls_are_one_write(
    live_url: str, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[contacts.Contact] = []
    monkeypatch.setattr("mcp_bridge.watch.note_contact", written.append)
    monkeypatch.setattr(contacts, "pace", contacts.Pace(step=1000))  # however slow the calls are
    _, token = make_key(alice)
    for _ in range(5):
        ask(live_url, token, REVISIONS[0], "tools/list", {})
    wait_until(lambda: bool(written))
    assert len(written) == 1


def test_the_programs_of_a_user_are_bounded(alice: User) -> None:
    key = make_key(alice)[0]
    for number in range(contacts.KEPT_PER_USER + 5):
        by = Principal(user=alice, scopes=frozenset(), api_key=key)
        contacts.note_contact(contacts.Contact(principal=by, client=f"program {number}"))
    assert AgentContact.objects.count() == contacts.KEPT_PER_USER
    assert contacts.recent_contacts(user=alice)[0].client == f"program {number}"


def test_a_stranger_sees_no_contact_of_others(alice: User, charlie: User, staff: User) -> None:
    by = Principal(user=alice, scopes=frozenset())
    contacts.note_contact(contacts.Contact(principal=by))
    assert len(contacts.recent_contacts(user=alice)) == 1
    assert contacts.recent_contacts(user=charlie) == contacts.recent_contacts(user=staff) == []


def test_the_pace_forgets_in_time() -> None:
    pace = contacts.Pace(step=1000)
    assert [pace.allows("a"), pace.allows("a"), pace.allows("b")] == [True, False, True]
    for number in range(contacts.REMEMBERED):
        pace.allows(number)
    assert pace.allows("a")
