"""Requests that nobody would write by hand, from the OpenAPI document and by chance."""

import json
import random
from collections.abc import Iterator
from typing import Any

import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.harness.rest_routes import World

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
# The row that a name in the path stands for, by the segment before it.
NAMED = {"playbooks": "playbook", "evolutions": "job", "api-keys": "key", "sessions": "session"}
VALUES = {"versions": 1, "bullets": "str-00001"}


def walk(world: World, token: str, *, cases: int, first: int = 0) -> int:
    """Send so many cases, spread over every operation; raises what does not fit the document."""
    for signal in (request_started, request_finished):
        # As Django's test client does: the connection belongs to the test's transaction.
        signal.disconnect(close_old_connections)
    try:
        return _walk(world, token, cases, first)
    finally:
        for signal in (request_started, request_finished):
            signal.connect(close_old_connections)


def _walk(world: World, token: str, cases: int, first: int) -> int:
    schema = schemathesis.openapi.from_wsgi("/api/schema?format=json", get_wsgi_application())
    found: list[Any] = list(schema.get_all_operations())
    operations = [one.ok() for one in found]
    each = -(-cases // len(operations))
    done = 0
    for number, operation in enumerate(operations):
        done += _send(operation, world, token, each, first + number)
    return done


def _send(operation: Any, world: World, token: str, each: int, number: int) -> int:
    ways = [operation.as_strategy(mode) for mode in MODES]
    known = _known(operation.path, world)
    if known:
        ways += [operation.as_strategy(mode, path_parameters=known) for mode in MODES]
    sent = 0

    @seed(number)
    @settings(
        max_examples=each,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(ways))
    def check(case: Any) -> None:
        nonlocal sent
        sent += 1
        headers = {"Authorization": f"Bearer {token}"}
        # What one case changes, the next one does not see.
        with transaction.atomic():
            case.call_and_validate(headers=headers, checks=CHECKS)
            transaction.set_rollback(True)

    check()
    return sent


def _known(path: str, world: World) -> dict[str, Any]:
    """The ids of real rows, for the names in this path that have one."""
    parts = path.split("/")
    known: dict[str, Any] = {}
    for before, name in zip(parts, parts[1:], strict=False):
        if name.startswith("{") and before in NAMED:
            known[name.strip("{}")] = world.ids[NAMED[before]]
        elif name.startswith("{") and before in VALUES:
            known[name.strip("{}")] = VALUES[before]
    return known if len(known) == path.count("{") else {}


NASTY: list[str] = [
    *('"\\u0000"', '"\\ud800"', '"\\udfff\\ud800"', "NaN", "-Infinity", "1e999", "9" * 400),
    *("-0", "0.1e-400", "[" * 60 + "]" * 60, '{"a":' * 40 + "1" + "}" * 40, "null", "true"),
    *('""', '"\\u202e\\u200b"', '"' + "a" * 70_000 + '"', "{}", "[]", "[[]]", "2147483648"),
    *("9223372036854775807", '"%00"', '"\\n\\r\\t"', '"{{7*7}}"', '"\' OR 1=1 --"', '"../.."'),
]
BYTES = [b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b'"', b"\\", b"{", b"}"]


def mutants(body: dict[str, Any], chance: random.Random) -> Iterator[bytes]:
    """Without end: the body as JSON with some of it replaced, doubled, cut or broken."""
    while True:
        text = _with_nasty_values(body, chance) if chance.random() < 0.6 else json.dumps(body)
        raw = text.encode("utf-8", "surrogatepass")
        for _ in range(chance.choice((0, 0, 1, 1, 2, 5))):
            raw = _broken(raw, chance)
        yield raw


def _with_nasty_values(body: dict[str, Any], chance: random.Random) -> str:
    pairs: list[list[str]] = [[json.dumps(name), json.dumps(value)] for name, value in body.items()]
    for pair in pairs:
        if chance.random() < 0.5:
            pair[1] = chance.choice(NASTY)
    if chance.random() < 0.2:
        pairs.append([chance.choice([*(p[0] for p in pairs), '"other"', '""', '"\\u0000"']), "1"])
    return "{" + ", ".join(f"{name}: {value}" for name, value in pairs) + "}"


def _broken(raw: bytes, chance: random.Random) -> bytes:
    here = chance.randrange(len(raw) + 1)
    match chance.randrange(5):
        case 0:
            return raw[:here]
        case 1:
            return raw[:here] + chance.choice(BYTES) + raw[here:]
        case 2:
            return raw[:here] + raw[here + 1 :]
        case 3:
            return raw[:here] + bytes([chance.randrange(256)]) + raw[here + 1 :]
        case _:
            return raw[:here] + raw[max(0, here - chance.randrange(30)) :]
