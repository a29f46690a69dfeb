"""No REST request costs more than 250 ms of CPU; `make fuzz` sends every family to every field."""

from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import transaction
from pytest_django import Settings

from accounts.models import User
from tests.harness.rest_client import Rest
from tests.harness.rest_routes import ROUTES, World
from tests.harness.slow_requests import (
    EVERY,
    FAMILIES,
    FLOODS,
    Stopwatch,
    cases,
    fields_of,
    to_json,
    with_value,
)

pytestmark = pytest.mark.measures_cpu

QUERIES = {
    "/playbooks": ("query", "cursor", "page_size", "status"),
    "/playbooks/{playbook}": ("section", "version", "max_tokens"),
    "/playbooks/{playbook}/export": ("format",),
    "/playbooks/{playbook}/versions/1/diff": ("against",),
    "/sessions": ("playbook_id", "cursor"),
    "/search": ("q",),
    "/billing/usage": ("period", "model", "group_by"),
}
OPERATIONS: list[dict[str, Any]] = [
    {"type": "ADD", "section": "str", "content": "a", "reason": "b"},
    {"type": "UPDATE", "id": "str-00001", "content": "a"},
    {"type": "MERGE", "id": "str-00001", "ids": ["str-00002"], "content": "a"},
    {"type": "TAG", "id": "str-00001", "tag": "helpful"},
]
MESSAGE = {
    "role": "assistant",
    "content": "a",
    "tool_calls": [{"id": "a", "name": "b", "arguments": "c"}],
    "bullet_ids": ["str-00001"],
}
# Bodies with more of their fields than the table of routes needs.
BODIES: dict[str, dict[str, Any]] = {
    "POST /playbooks": {
        "name": "a",
        "description": "b",
        "sections": [{"title": "A", "key": "k", "slug": "aa", "aliases": ["x"]}],
    },
    "POST /playbooks/import": {"name": "a", "content": "## A\n", "description": "c"},
    "POST /playbooks/{playbook}/deltas": {"operations": OPERATIONS},
    "POST /playbooks/{playbook}/outcomes": {
        "task_description": "a",
        "outcome": "success",
        "reasoning_trace": "b",
        "notes": "c",
        "bullet_ids": ["str-00001"],
        "serving_id": "d",
        "idempotency_key": "e",
    },
    "POST /sessions": {"title": "a", "model": "b", "serving_id": "c", "playbook_id": "d"},
    "POST /sessions/{session}/messages": {"messages": [MESSAGE]},
}


@pytest.fixture(autouse=True)
def no_limits(settings: Settings) -> None:
    settings.RATE_LIMITS = dict.fromkeys(settings.RATE_LIMITS, "1000000/s")
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture
def stopwatch() -> Iterator[Stopwatch]:
    watch = Stopwatch()
    yield watch
    watch.report()


def _send(rest: Rest, method: str, path: str, body: bytes) -> int:
    with transaction.atomic():
        status: int = rest.send(method, path, body).status_code
        transaction.set_rollback(True)
    return status


def _variants(number: int, body: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
    """The body as JSON with one of its values replaced, and what was done to it.

    Of the floods, which one parser reads for all routes, each route gets one: by its `number`.
    """
    paths = {".".join(map(str, path)): path for path in fields_of(body)}
    for name, family, size in cases(list(paths)):
        changed = with_value(body, paths[name], FAMILIES[family](size))
        yield f"{name}: {size:,} of {family}", to_json(changed)
    floods = list(FLOODS.items())
    for flood, value in floods if EVERY else [floods[number % len(floods)]]:
        for name, path in list(paths.items())[: None if EVERY else 1]:
            yield f"{name}: {flood}", to_json(with_value(body, path, value))


@pytest.mark.timeout(3600)
def test_no_body_is_slow(world: World, alice: User, stopwatch: Stopwatch) -> None:
    rest = Rest.of(alice)
    for number, route in enumerate(ROUTES):
        for name, raw in _variants(number, BODIES.get(str(route), world.body(route))):
            send = partial(_send, rest, route.method, world.path(route), raw)
            stopwatch.send(f"{route} {name}", send)


@pytest.mark.timeout(3600)
def test_no_query_is_slow(world: World, alice: User, stopwatch: Stopwatch) -> None:
    rest = Rest.of(alice)
    for path, names in QUERIES.items():
        for name, family, size in cases(list(names)):
            text = FAMILIES[family](min(size, 19_000)).encode(errors="replace")
            url = f"{path.format(**world.ids)}?{urlencode({name: text})}"
            send = partial(_send, rest, "GET", url, b"")
            stopwatch.send(f"GET {path}?{name}: {size:,} of {family}", send)
