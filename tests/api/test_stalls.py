"""Small requests that once stopped a whole process for seconds, or broke a playbook for ever."""

import json
from typing import Any

import pytest

from accounts.models import User
from core.security.scopes import Principal, Scope
from playbooks.document.operations import Operation
from playbooks.models import Playbook
from playbooks.services.editing import edit_playbook
from playbooks.starters.loader import load_starters
from tests.factories import make_playbook
from tests.harness.rest_client import Rest
from tests.harness.rest_routes import World
from tests.harness.slow_requests import Stopwatch

pytestmark = pytest.mark.measures_cpu

MARKS = "a" + "\u0315" * 10_000 + "\u0300" * 10_000
ADD = {"type": "ADD", "section": "str", "content": MARKS}


def quickly(rest: Rest, method: str, path: str, body: Any = b"") -> int:
    """The status of a request, which costs at most 250 ms of CPU."""
    return Stopwatch().send(path, lambda: rest.send(method, path, body).status_code)


def test_a_section_name_of_combining_marks(charlie: User) -> None:
    load_starters()
    starter = Playbook.objects.filter(owner=None).first()
    assert starter is not None
    section = "a" + "%CC%95" * 5_000 + "%CC%80" * 5_000
    rest = Rest.key(charlie, Scope.READ)
    assert quickly(rest, "GET", f"/playbooks/{starter.pk}?section={section}") == 400


@pytest.mark.parametrize("who", ["alice", "charlie", "staff"])
def test_edits_of_combining_marks(
    request: pytest.FixtureRequest, playbook: Playbook, who: str
) -> None:
    rest, path = Rest.of(request.getfixturevalue(who)), f"/playbooks/{playbook.pk}/deltas"
    assert quickly(rest, "POST", path, {"operations": [ADD] * 5}) == 400


@pytest.mark.parametrize("path", ["/playbooks", "/playbooks/import"])
@pytest.mark.parametrize("field", ["name", "description"])
def test_a_name_of_combining_marks(alice: User, path: str, field: str) -> None:
    body = {"name": "a", "content": "## A\n"} if path.endswith("import") else {"name": "a"}
    assert quickly(Rest.of(alice), "POST", path, body | {field: MARKS}) == 400


def test_the_diff_of_repeated_words(alice: User) -> None:
    text = "## A\n" + "".join(
        f"[str-{n:05d}] helpful=0 harmful=0 :: {n} " + "a " * 980 + "\n" for n in range(1, 21)
    )
    playbook = make_playbook(alice, text=text)
    changes = [
        Operation("UPDATE", id=f"str-{n:05d}", content=f"{n} " + "a b " * 490) for n in range(1, 21)
    ]
    edit_playbook(playbook=playbook, by=Principal.of(alice), operations=changes)
    assert quickly(Rest.of(alice), "GET", f"/playbooks/{playbook.pk}/versions/2/diff") == 200


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/playbooks", "sections"),
        ("/playbooks/{playbook}/deltas", "operations"),
        ("/playbooks/{playbook}/outcomes", "bullet_ids"),
        ("/sessions/{session}/messages", "messages"),
    ],
)
def test_a_flood_of_items(world: World, alice: User, path: str, field: str) -> None:
    rest = Rest.of(alice)
    assert quickly(rest, "POST", path.format(**world.ids), {field: [{}] * 40_000}) == 400


@pytest.mark.parametrize(
    "value", ['{"helpful": ' + "9" * 5_000, '{"aliases": ["\\ud800"]', '{"id": "a\\u0000"']
)
def test_json_that_nothing_can_hold_is_refused_by_an_import(alice: User, value: str) -> None:
    text = f'{{"sections": [{{"title": "A", "bullets": [{value}}}]}}]}}'
    assert (
        quickly(Rest.of(alice), "POST", "/playbooks/import", {"name": "a", "content": text}) == 400
    )


def test_an_alias_of_invisible_characters_is_left_out_of_an_import(alice: User) -> None:
    section: dict[str, Any] = {"title": "OWN", "aliases": ["mine", "\u200b", "a\u202eb"]}
    section["bullets"] = [{"id": "own-00001", "content": "Read the log first."}]
    body = {"name": "a", "content": json.dumps({"sections": [section]})}
    rest = Rest.of(alice)
    made = rest.post("/playbooks/import", body).json()
    sections = rest.get(f"/playbooks/{made['id']}/sections").json()["results"]
    assert sections[0]["aliases"] == ["mine", "ab"]
    assert rest.get(f"/playbooks/{made['id']}/export?format=json").status_code == 200
