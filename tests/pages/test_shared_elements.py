"""What every page shares: the theme, times in words, the palette."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from accounts.models import User
from config.templatetags.site import ago, browser_name
from playbooks.starters.loader import load_starters
from tests.factories import make_playbook


def test_a_chosen_theme_is_kept_and_rendered_by_the_server(client: Client, db: None) -> None:
    response = client.post(
        "/theme", {"theme": "dark"}, headers={"Referer": "http://testserver/login"}
    )
    assert response["Location"] == "http://testserver/login"
    assert '<html lang="en" data-theme="dark">' in client.get("/login").content.decode()
    client.post("/theme", {"theme": "system"})
    assert '<html lang="en">' in client.get("/login").content.decode()


def test_a_theme_leads_to_no_other_site_and_has_to_be_known(client: Client, db: None) -> None:
    sent = {"theme": "dark"}
    response = client.post("/theme", sent, headers={"Referer": "https://elsewhere.example/"})
    assert response["Location"] == "/"
    assert client.post("/theme", {"theme": '"><b>'}).status_code == 400
    assert client.get("/theme").status_code == 405


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (timedelta(seconds=5), "just now"),
        (timedelta(seconds=61), "1 minute ago"),
        (timedelta(hours=5, minutes=1), "5 hours ago"),
        (timedelta(days=20), "2 weeks ago"),
        (timedelta(days=800), "2 years ago"),
        (-timedelta(seconds=5), "in a moment"),
        (-timedelta(days=90, hours=1), "in 3 months"),
        (-timedelta(days=89, hours=23), "in 3 months"),
    ],
)
def test_times_are_said_in_words(before: timedelta, words: str) -> None:
    assert ago(timezone.now() - before) == words


@pytest.mark.parametrize(
    ("user_agent", "words"),
    [
        (
            "Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/140.0",
            "Firefox on Linux",
        ),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/140.0 Safari/537.36 Edg/140.0", "Edge on Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Safari/604.1", "Safari on iPhone"),
        ("curl/8.5.0", "curl/8.5.0"),
        ("", "Unknown browser"),
    ],
)
def test_a_browser_is_named_as_people_name_it(user_agent: str, words: str) -> None:
    assert browser_name(user_agent) == words


def test_the_palette_knows_ones_own_playbooks_only(
    owner: Client, stranger: Client, alice: User
) -> None:
    make_playbook(alice, name="Fixing tests")
    assert "Fixing tests" in owner.get("/go?q=fixing").content.decode()
    assert "Fixing tests" not in stranger.get("/go?q=fixing").content.decode()
    fragment = owner.get("/go?q=fixing", headers={"HX-Request": "true"}).content.decode()
    assert 'role="option"' in fragment
    assert "<html" not in fragment


def test_the_navigation_names_each_thing_once(owner: Client, alice: User) -> None:
    """A chat is in the playground, a starter in New playbook, a session in its playbook."""
    load_starters()
    page = owner.get("/playbooks/new").content.decode()
    assert "Clone a starter" in page
    nav, menu = page.split('aria-label="Main"')[1].split("</nav>")[:2]
    assert "Playground</a>" in nav
    for other in ("Chat", "Starters", "Sessions"):
        assert other not in nav and other not in menu.split("</ul>")[0]
