"""The connect page: configurations to copy, and three states that follow the door."""

import re
import time

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounts.keys.api_keys import revoke_api_key
from accounts.models import User
from core.security.scopes import Principal
from mcp_bridge.clients import CLIENTS
from mcp_bridge.models import ClientActivity
from mcp_bridge.protocol import client_activity
from mcp_bridge.web.views import RECENT
from tests.factories import make_key
from tests.pages.test_every_page import faults

CHECK = "/connect/check"


def arrive(user: User, **found: str) -> ClientActivity:
    """As the door notes it for the first key of `user`."""
    key = user.api_keys.first() or make_key(user)[0]
    by = Principal(user=user, scopes=frozenset(), api_key=key)
    client_activity.record_activity(client_activity.RequestActivity(principal=by, **found))
    return ClientActivity.objects.latest("seen_at")


def status_of(client: Client, address: str = "/connect") -> str:
    """The badge and the sentence, as text."""
    html = client.get(address).content.decode()
    section = html[
        html.index('id="connection-status"') : html.index(
            "</section>", html.index("connection-status")
        )
    ]
    return " ".join(re.sub(r"<[^>]+>", " ", section).split())


@pytest.mark.parametrize("client_slug", [client.slug for client in CLIENTS])
def test_each_client_has_its_page_with_the_address_of_this_server(
    owner: Client, client_slug: str
) -> None:
    response = owner.get(f"/connect?client={client_slug}", headers={"host": "localhost:8000"})
    html = response.content.decode()
    assert "http://localhost:8000/mcp" in html
    assert 'aria-current="page">' in html
    assert faults(response) == []


def test_no_page_carries_a_key(owner: Client, alice: User) -> None:
    token = make_key(alice)[1]
    pages = [owner.get(f"/connect?client={client.slug}").content.decode() for client in CLIENTS]
    assert not any(token in page for page in pages)
    assert not any(re.search(r"ace_live_[0-9A-Za-z]{12}_", page) for page in pages)


def test_a_login_is_shown_only_where_the_server_offers_one(
    owner: Client, settings: Settings
) -> None:
    way = "With browser login"
    address = "/connect?client=claude-ai"
    assert way in owner.get(address, headers={"host": "localhost:8000"}).content.decode()
    settings.OAUTH_ENABLED = False
    page = owner.get(address, headers={"host": "localhost:8000"}).content.decode()
    assert way not in page
    assert "claude.ai has no other way to connect" in page


def test_the_public_address_is_the_one_to_copy(owner: Client, settings: Settings) -> None:
    settings.PUBLIC_URL = "https://ace.example.org"
    page = owner.get("/connect?client=claude-ai").content.decode()
    assert "https://ace.example.org/mcp" in page
    assert "cannot reach" not in page


def test_an_unknown_client_is_the_first_one(owner: Client) -> None:
    for slug in ("", "nonsense", "<script>"):
        assert "<title>Connect Claude Code" in owner.get(f"/connect?client={slug}").content.decode()


def test_at_first_nothing_has_arrived(owner: Client) -> None:
    assert "waiting" in status_of(owner)


def test_a_call_shows_program_and_tool(owner: Client, alice: User) -> None:
    arrive(alice, client="claude-code 2.1", tool="get_playbook")
    text = status_of(owner)
    assert "connected claude-code 2.1 is connected and called get_playbook" in text
    assert "with the key" in text


@pytest.mark.parametrize(("code", "says"), [("insufficient_scope", "Give it the scope")])
def test_a_refusal_says_why_and_what_to_do(
    owner: Client, alice: User, code: str, says: str
) -> None:
    arrive(alice, client="codex 1", tool="report_outcome", refusal=code)
    text = status_of(owner)
    assert "refused codex 1 was refused" in text
    assert says in text


def test_a_revoked_key_is_named(owner: Client, alice: User) -> None:
    key, token = make_key(alice, name="laptop")
    revoke_api_key(key=key, reason="test")
    client_activity.record_activity(
        client_activity.RequestActivity(token=token, refusal="not_authenticated")
    )
    assert "with the key “laptop”. This key is revoked." in status_of(owner)


def test_what_came_long_ago_is_history(owner: Client, alice: User) -> None:
    arrive(alice, client="old 1")
    ClientActivity.objects.update(seen_at=timezone.now() - 2 * RECENT)
    assert "waiting" in status_of(owner)
    assert "old 1" in owner.get("/connect").content.decode()


def test_a_stranger_and_staff_see_nothing_of_it(
    stranger: Client, admin_page: Client, alice: User
) -> None:
    arrive(alice, client="claude-code 2.1")
    for other in (stranger, admin_page):
        assert "waiting" in status_of(other)
        assert "claude-code 2.1" not in other.get("/connect").content.decode()


def test_the_check_answers_only_when_something_is_new(owner: Client, alice: User) -> None:
    page = owner.get("/connect").content.decode()
    address = re.search(r'hx-get="([^"]+)" hx-trigger="every 2s"', page)
    assert address is not None
    asked = address[1].replace("&amp;", "&")
    assert owner.get(asked).status_code == 204
    arrive(alice, client="claude-code 2.1")
    assert "claude-code 2.1 is connected" in status_of(owner, asked)


def test_a_page_left_open_stops_asking(owner: Client) -> None:
    html = owner.get(f"{CHECK}?seen=nothing+0&until={int(time.time()) - 1}").content.decode()
    assert "hx-trigger" not in html
    assert "Automatic updates have stopped" in html


def test_nobody_is_sent_to_the_login(client: Client, db: None) -> None:
    for address in ("/connect", CHECK):
        assert client.get(address)["Location"].startswith("/login?next=")


def test_a_hostile_name_of_a_program_is_text(owner: Client, alice: User) -> None:
    arrive(alice, client="<img src=x onerror=alert(1)>")
    response = owner.get("/connect")
    assert "<img" not in response.content.decode()
    assert faults(response) == []
