"""Lists come in cursor pages."""

import base64
from urllib.parse import urlsplit

import pytest

from accounts.models import User
from tests.factories import make_playbook
from tests.harness.rest_client import ROOT, Rest

pytestmark = pytest.mark.postgres


def test_pages_hold_every_row_once_newest_first(alice: User) -> None:
    names = [f"Playbook {number}" for number in range(5)]
    for name in names:
        make_playbook(alice, name=name)
    rest, path, seen = Rest.of(alice), "/playbooks?page_size=2", []
    while path:
        page = rest.get(path).json()
        seen += [row["name"] for row in page["results"]]
        path = page["next"] and page["next"].split(ROOT, 1)[1]
    assert seen == names[::-1]


def test_a_page_links_to_the_previous_one(alice: User) -> None:
    for number in range(3):
        make_playbook(alice, name=f"Playbook {number}")
    rest = Rest.of(alice)
    first = rest.get("/playbooks?page_size=2").json()
    second = rest.get(first["next"].split(ROOT, 1)[1]).json()
    again = rest.get(second["previous"].split(ROOT, 1)[1]).json()
    assert again["results"] == first["results"]
    assert urlsplit(first["next"]).path == f"{ROOT}/playbooks"


def test_a_page_has_at_most_a_hundred_rows(alice: User) -> None:
    assert Rest.of(alice).get("/playbooks?page_size=100000").status_code == 200


@pytest.mark.parametrize("size", ["0", "-1", "x", "1.5", "9" * 50, "%00", "٣"])
def test_a_page_size_must_be_a_number(alice: User, size: str) -> None:
    answer = Rest.of(alice).get(f"/playbooks?page_size={size}")
    assert list(answer.json()["error"]["fields"]) == ["page_size"]


def encoded(position: str) -> str:
    return base64.b64encode(f"p={position}".encode()).decode()


ROUTES = [
    *("/playbooks", "/playbooks/{}/versions"),
    *("/playbooks/{}/sections", "/playbooks/{}/outcomes"),
]
CURSORS = [
    encoded("0001-01-01T00:00:00+23:59"),
    "x",
    "%00",
    "é",
    "!!!",
    encoded("garbage"),
    encoded("2026-99-99"),
    encoded("%00"),
]


@pytest.mark.parametrize("cursor", CURSORS)
@pytest.mark.parametrize("route", ROUTES)
def test_a_forged_cursor_is_refused(alice: User, cursor: str, route: str) -> None:
    path = route.format(make_playbook(alice).pk)
    answer = Rest.of(alice).get(f"{path}?cursor={cursor}")
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == ["cursor"]
