"""Every page and admin page, requested by every kind of user with ids of another user."""

import re
from collections.abc import Iterator
from itertools import cycle

import pytest
from django.test import Client

from accounts.models import User
from tests.config.test_security_headers import addresses
from tests.factories import make_key, make_user
from tests.harness.clients import logged_in_client
from tests.harness.rest_routes import make_world

CANARY = "canary-51c2"
PAGES = sorted(path for path in set(addresses()) if not path.startswith(("/api/", "/admin/")))
ID = "00000000-0000-4000-8000-000000000000"
# What the id after a word of an address is an id of.
KINDS = {
    "playbooks": "playbook",
    "outcomes": "outcome",
    "evolutions": "job",
    "sessions": "session",
    "playground": "session",
    "trials": "trial",
    "keys": "key",
    "sources": "key",
}


@pytest.fixture
def rows(db: None) -> dict[str, str]:
    """The ids of a person whose e-mail, playbook, key and outcome carry the canary."""
    owner = make_user(f"{CANARY}@example.org")
    world = make_world(owner, canary=CANARY)
    return world.ids | {"user": str(owner.pk)}


def filled(rows: dict[str, str], *, every: bool) -> Iterator[str]:
    """Each page that names rows: with the rows it is about, and with one of another kind, or all.

    REST has a matrix of its own.
    """
    others = cycle(rows.values())
    for address in PAGES:
        if ID not in address and not re.search(r"/x(/|$)", address):
            continue
        yield re.sub(rf"/(\w+)/({ID}|x)(?=/|$)", lambda part: _own(rows, *part.groups()), address)
        for row in rows.values() if every else (next(others),):
            yield re.sub(rf"/({ID}|x)(?=/|$)", f"/{row}", address)


def _own(rows: dict[str, str], word: str, given: str) -> str:
    return f"/{word}/{rows[KINDS[word]] if word in KINDS else given}"


@pytest.mark.parametrize(
    ("who", "every"),
    [
        ("nobody", False),
        ("stranger", False),
        ("a key as bearer", False),
        pytest.param("stranger", True, marks=pytest.mark.nightly),
    ],
)
def test_no_page_shows_anything_of_another_user(
    rows: dict[str, str], charlie: User, who: str, every: bool
) -> None:
    client = logged_in_client(charlie) if who == "stranger" else Client()
    headers = {"Authorization": f"Bearer {make_key(charlie)[1]}"} if "key" in who else {}
    asked = list(filled(rows, every=every))
    for address in asked:
        answer = client.get(address, headers=headers)
        assert CANARY not in answer.content.decode(errors="replace"), address
        assert answer.status_code in {301, 302, 400, 401, 403, 404, 405}, (address, answer)
    assert len(asked) > 80
    assert f"/playbooks/{rows['playbook']}/outcomes/{rows['outcome']}" in asked


def test_a_session_does_not_authenticate_the_api(rows: dict[str, str], charlie: User) -> None:
    client = logged_in_client(charlie)
    for address in ("/api/v1/auth/me", "/api/v1/playbooks", "/api/v1/auth/me/export"):
        assert client.get(address).status_code == 401, address


def test_the_admin_is_for_staff_only(rows: dict[str, str], charlie: User) -> None:
    client = logged_in_client(charlie)
    for address in sorted(set(addresses())):
        if address.startswith("/admin/") and address != "/admin/logout/":
            answer = client.get(address)
            assert answer.status_code in {302, 403, 404, 405}, address
            assert answer.get("Location", "/login").startswith(("/login", "/admin/login")), address
