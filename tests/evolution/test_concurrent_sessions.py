"""Several programs write one session at once: nothing is lost, and it is reported once."""

import pytest

from accounts.models import User
from core.security.scopes import Principal
from evolution.models import AgentSession, Outcome
from evolution.sessions.recording import SessionReport, add_messages, close_session
from evolution.sessions.validation import NewMessage
from playbooks.models import Playbook
from tests.factories import make_session
from tests.harness.concurrency import run_concurrently

pytestmark = [pytest.mark.databases, pytest.mark.django_db(transaction=True)]


def fresh() -> AgentSession:
    return AgentSession.objects.get()


def test_messages_added_at_once_all_have_their_place(alice: User) -> None:
    session = make_session(alice)
    said = [NewMessage("user", "one"), NewMessage("assistant", "two")]
    run_concurrently(8, lambda _: add_messages(session=fresh(), messages=said))
    rows = session.messages.values_list("position", "role")
    assert [position for position, _ in rows] == list(range(16))
    assert [role for _, role in rows] == ["user", "assistant"] * 8
    assert fresh().message_count == 16


def test_a_session_closed_at_once_is_reported_once(playbook: Playbook, alice: User) -> None:
    make_session(alice, playbook, ("user", "Fix it"))
    by, report = Principal.of(alice), SessionReport("success")
    run_concurrently(4, lambda _: close_session(session=fresh(), by=by, report=report))
    assert Outcome.objects.get() == fresh().outcome
