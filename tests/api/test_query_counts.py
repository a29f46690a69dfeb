"""The query count of each REST read is pinned, and the same for one row and for many."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from tests.factories import make_key, make_outcome, make_playbook
from tests.harness.rest_client import Rest
from tests.harness.rest_routes import World, make_world
from tests.harness.row_replay import RowReplay

# One of each finds the user of the access token.
PINNED = {
    "/auth/me": 1,
    "/auth/api-keys": 2,
    "/playbooks": 2,
    "/playbooks/{playbook}": 2,
    "/playbooks/{playbook}?version=1": 3,
    "/playbooks/{playbook}/export": 2,
    "/playbooks/{playbook}/versions": 3,
    "/playbooks/{playbook}/versions/1": 4,
    "/playbooks/{playbook}/sections": 3,
    "/playbooks/{playbook}/bullets": 3,
    "/playbooks/{playbook}/bullets/str-00001/history": 7,
    "/playbooks/{playbook}/trials": 3,
    "/trials/{trial}": 2,
    "/playbooks/{playbook}/outcomes": 3,
    "/playbooks/{playbook}/evolutions": 4,
    "/playbooks/{playbook}/metrics": 7,
    "/playbooks/{playbook}/evidence": 4,
    "/playbooks/{playbook}/ledger": 7,
    "/evolutions/{job}": 4,
    "/outcomes/{outcome}": 3,
    "/sessions": 2,
    "/sessions?playbook_id={playbook}": 3,
    "/sessions/{session}": 2,
    "/sessions/{session}/messages": 3,
    "/billing/usage": 2,
}


def queries(rest: Rest, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert rest.get(path).status_code == 200
    return len(captured)


@pytest.mark.parametrize("path", PINNED)
def test_a_read_costs_what_is_pinned(world: World, alice: User, path: str) -> None:
    assert queries(Rest.of(alice), path.format(**world.ids)) == PINNED[path]


def make_many(owner: User) -> World:
    """The same and three more of each: playbooks, and in the first bullets and outcomes."""
    world = make_world(owner)
    for number in range(3):
        make_world(owner, canary=f"{number}")
    rest, root = Rest.of(owner), f"/playbooks/{world.ids['playbook']}"
    for number in range(3):
        body = {"operations": [{"type": "ADD", "section": "str", "content": f"Advice {number}"}]}
        assert rest.post(f"{root}/deltas", body).status_code == 201
        report = {"task_description": "a", "outcome": "success"}
        assert rest.post(f"{root}/outcomes", report).status_code == 201
    return world


many_rows_of_alice = RowReplay(make_many)


@pytest.mark.parametrize("path", PINNED)
def test_more_rows_cost_no_more_queries(alice: User, path: str) -> None:
    world = many_rows_of_alice(alice)
    assert queries(Rest.of(alice), path.format(**world.ids)) == PINNED[path]


def test_an_api_key_in_use_costs_one_query(alice: User) -> None:
    rest = Rest(make_key(alice)[1])
    rest.get("/auth/me")
    assert queries(rest, "/auth/me") == 1


def test_a_report_costs_what_is_pinned(alice: User) -> None:
    playbook, rest = make_playbook(alice), Rest.of(alice)
    make_outcome(playbook, alice)
    body = {"task_description": "a", "outcome": "success", "bullet_ids": ["str-00001"]}
    with CaptureQueriesContext(connection) as captured:
        assert rest.post(f"/playbooks/{playbook.pk}/outcomes", body).status_code == 201
    work = [q for q in captured if "SAVEPOINT" not in q["sql"]]
    assert len(work) == 7
