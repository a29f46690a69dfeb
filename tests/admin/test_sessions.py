"""Staff sees that there were sessions, and nothing that was said in them."""

import pytest
from django.test import Client

from accounts.models import User
from evolution.models import AgentSession
from evolution.sessions.recording import add_messages
from evolution.sessions.validation import NewMessage
from playbooks.models import Playbook
from tests.factories import make_session
from tests.harness.clients import log_in_client

CANARY = "canary-c04d"
LISTS = ("agentsession", "sessionmessage")


@pytest.fixture
def session(playbook: Playbook, alice: User) -> AgentSession:
    made = make_session(alice, playbook, ("user", CANARY), title=CANARY)
    call = {"id": "1", "name": "add", "arguments": f'{{"title": "{CANARY}"}}'}
    add_messages(session=made, messages=[NewMessage("assistant", CANARY, tool_calls=[call])])
    return made


def test_no_page_of_the_admin_shows_what_was_said(session: AgentSession, staff: User) -> None:
    client, root = Client(), "/admin/evolution"
    log_in_client(client, staff)
    one = [f"{root}/agentsession/{session.pk}/change/"]
    one += [f"{root}/sessionmessage/{row.pk}/change/" for row in session.messages.all()]
    lists = [f"{root}/{name}/" for name in LISTS]
    by_session = f"{root}/sessionmessage/?session__id__exact={session.pk}"
    export = f"{root}/agentsession/export/"
    for address in (*one, *lists, by_session, export):
        answer = client.get(address)
        assert answer.status_code == 200, address
        assert CANARY not in answer.getvalue().decode(), address


def test_what_was_said_is_listed_by_role_and_size(session: AgentSession, staff: User) -> None:
    client = Client()
    log_in_client(client, staff)
    page = client.get(f"/admin/evolution/agentsession/{session.pk}/change/").content.decode()
    assert "2 messages, without their texts" in page


@pytest.mark.parametrize("name", LISTS)
def test_nobody_writes_sessions_in_the_admin(session: AgentSession, staff: User, name: str) -> None:
    client = Client()
    log_in_client(client, staff)
    row = session if name == "agentsession" else session.messages.all()[0]
    for verb in ("add", f"{row.pk}/delete"):
        assert client.get(f"/admin/evolution/{name}/{verb}/").status_code == 403
    assert client.post(f"/admin/evolution/{name}/{row.pk}/change/", {}).status_code == 403
