"""Bad input never causes a 5xx or a partial write, at any route."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from accounts.models import ApiKey, User
from evolution.models import Outcome, SessionMessage
from playbooks.models import Playbook, Version
from tests.api.test_request_body import BAD
from tests.harness.rest_client import Rest
from tests.harness.rest_routes import PROTECTED, ROUTES, Route, World, access_token

pytestmark = pytest.mark.postgres

WITH_BODY = [route for route in ROUTES if route.body]
WRONG: list[Any] = [
    *(None, True, 0, -1, 2**31, 2**63 - 1, 1.5, 1e300, "", " ", "a" * 200_000, [], {}, [[]]),
    *([None], [{}], ["a"] * 2000, {"a": {"b": "c"}}, "\u202e\u200b", "' OR 1=1 --", "../../etc"),
    *("9" * 5000, "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "{{7*7}}", "\n\r\t\x0b"),
]
NUMBERS = ("0", "-1", "1.5", "x", "%00", "9" * 30, "2147483648", "9223372036854775808", "%ED%A0%80")
QUERIES = [
    *(f"{name}={value}" for name in ("version", "against", "page_size") for value in NUMBERS),
    *(f"{name}=%00" for name in ("section", "status", "include_starters", "period", "cursor")),
    *("section=" + "a" * 5000, "cursor=" + "a" * 5000, "a" * 5000, "%ff=%ff", "page_size[]=1"),
]


READING = [route for route in PROTECTED if route.method == "GET"]
# `make nightly` sends everything everywhere; else each route gets an eighth, and its neighbours the
# other eighths: routes share their parsing, and 2,000 requests took 30 s of CPU.
EIGHTH, ALL = 8, 1
SHARES = [EIGHTH, pytest.param(ALL, marks=pytest.mark.nightly)]


def variants(body: dict[str, Any], first: int, step: int) -> Iterator[dict[str, Any]]:
    """The body with each of its fields left out, or replaced by wrong values."""
    for number, name in enumerate(body):
        yield {key: value for key, value in body.items() if key != name}
        for wrong in WRONG[(first + number) % step :: step]:
            yield {**body, name: wrong}


@pytest.mark.parametrize("step", SHARES)
@pytest.mark.parametrize("route", WITH_BODY, ids=str)
def test_wrong_values_are_refused_or_accepted(
    world: World, alice: User, route: Route, step: int
) -> None:
    rest = Rest(access_token(alice))
    for body in variants(route.body, WITH_BODY.index(route), step):
        answer = rest.send(route.method, world.path(route), body)
        assert answer.status_code < 500, json.dumps(body)[:200]
        if answer.status_code >= 400:
            assert answer.json()["error"]["message"], body


@pytest.mark.parametrize("step", SHARES)
@pytest.mark.parametrize("route", WITH_BODY, ids=str)
def test_malformed_bodies_are_refused_everywhere(
    world: World, alice: User, route: Route, step: int
) -> None:
    rest = Rest(access_token(alice))
    for name, body in list(BAD.items())[WITH_BODY.index(route) % step :: step]:
        answer = rest.send(route.method, world.path(route), body)
        assert answer.status_code == 400, name


@pytest.mark.parametrize("field", ["name", "description"])
@pytest.mark.parametrize("text", ['"\\u0000"', '"\\ud800"', '"a\\udfffb"'])
def test_unstorable_text_writes_nothing(alice: User, field: str, text: str) -> None:
    body = json.dumps({"name": "a"})[:-1] + f', "{field}": {text}}}'
    assert Rest.of(alice).post("/playbooks", body.encode()).status_code == 400
    assert not Playbook.objects.exists()


@pytest.mark.parametrize("step", SHARES)
@pytest.mark.parametrize("route", READING, ids=str)
def test_odd_queries_are_refused_or_ignored(
    world: World, alice: User, route: Route, step: int
) -> None:
    rest = Rest(access_token(alice))
    for query in QUERIES[READING.index(route) % step :: step]:
        answer = rest.get(f"{world.path(route)}?{query}")
        assert answer.status_code < 500, query


@pytest.mark.parametrize("number", ["0", "2147483648", "9" * 30, "9" * 5000])
def test_a_version_number_out_of_range_is_not_found(world: World, alice: User, number: str) -> None:
    rest, root = Rest.of(alice), f"/playbooks/{world.ids['playbook']}/versions/{number}"
    assert rest.get(root).status_code == 404
    assert rest.get(f"{root}/diff").status_code == 404
    assert rest.post(f"{root}/rollback").status_code == 404
    assert Version.objects.count() == 1


@pytest.mark.parametrize("key", ["a" * 201, "with space", "é", "a\x7f"])
def test_an_unstorable_idempotency_key_is_refused(alice: User, key: str) -> None:
    answer = Rest.of(alice).post("/playbooks", {"name": "a"}, Idempotency_Key=key)
    assert (answer.status_code, Playbook.objects.count()) == (400, 0)


def test_a_misspelt_field_is_refused_by_name_and_stores_nothing(alice: User) -> None:
    """Except in a report, which must not be lost."""
    answer = Rest.of(alice).post("/playbooks", {"name": "t", "contents": "- Tag each release."})
    assert answer.status_code == 400
    assert list(answer.json()["error"]["fields"]) == ["contents"]
    assert not Playbook.objects.exists()


NAMED = [
    ("POST", "/playbooks/{playbook}/outcomes", {"task_description": " ", "outcome": "success"}),
    ("POST", "/sessions/{session}/messages", {"messages": []}),
    ("POST", "/sessions/{session}/messages", {"messages": [{}] * 2000}),
    ("POST", "/playbooks/import", {"name": "a", "content": '{"bullets": '}),
    ("POST", "/auth/api-keys/{key}/rotate", {"overlap_hours": 169}),
    ("GET", "/playbooks/{playbook}/bullets?status=lost", {}),
]


@pytest.mark.parametrize(("method", "path", "body"), NAMED, ids=lambda value: str(value)[:40])
def test_what_is_wrong_is_said_of_the_field_and_stores_nothing(
    world: World, alice: User, method: str, path: str, body: dict[str, Any]
) -> None:
    before = rows()
    answer = Rest(access_token(alice)).send(method, path.format(**world.ids), body)
    error = answer.json()["error"]
    assert (answer.status_code, bool(error["message"])) == (400, True)
    assert rows() == before


def rows() -> list[int]:
    models = (Playbook, Version, Outcome, SessionMessage, ApiKey)
    return [model._base_manager.count() for model in models]
