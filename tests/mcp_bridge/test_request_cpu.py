"""No message to /mcp costs more than 250 ms of CPU; `make fuzz` sends every family everywhere."""

import json
from functools import partial
from typing import Any

import pytest
from pytest_django import Settings

from accounts.models import User
from tests.factories import make_key, make_outcome, make_playbook
from tests.harness.mcp_requests import Target, on_tools
from tests.harness.raw_mcp import send_request
from tests.harness.slow_requests import (
    EVERY,
    FAMILIES,
    FLOODS,
    Stopwatch,
    cases,
    fields_of,
    with_value,
)


@pytest.fixture(autouse=True)
def no_limits(settings: Settings) -> None:
    settings.RATE_LIMITS = dict.fromkeys(settings.RATE_LIMITS, "1000000/s")


@pytest.mark.timeout(3600)
def test_no_message_is_slow(live_url: str, alice: User) -> None:
    playbook = make_playbook(alice)
    make_outcome(playbook, alice)
    key = make_key(alice)[1]
    target = Target(str(playbook.pk), playbook.name, str(playbook.pk))
    report = {"notes": "a", "reasoning_trace": "b", "bullet_ids": ["str-00001"]}
    requests = on_tools(target)
    method, params = requests[3]
    assert params["name"] == "report_outcome"
    requests[3] = method, with_value(params, ("arguments",), params["arguments"] | report)
    watch = Stopwatch()
    for number, (method, params) in enumerate(requests if EVERY else requests[:4] + requests[-3:]):
        # The protocol reads a flood before it looks at the method.
        for name, value in _values(params, flooded=EVERY or number % 4 == 0):
            changed = with_value(params, tuple(name), value[1])
            watch.send(
                f"{method} {name}: {value[0]}", partial(_send, live_url, key, method, changed)
            )
    watch.report()


def _values(params: dict[str, Any], *, flooded: bool) -> Any:
    """A path into the parameters, and a family or flood for it."""
    paths = {json.dumps(path): path for path in fields_of(params)}
    for name, family, size in cases(list(paths)):
        yield paths[name], (f"{size:,} of {family}", FAMILIES[family](size))
    for flood, value in FLOODS.items() if flooded else ():
        for path in list(paths.values())[: None if EVERY else 1]:
            yield path, (flood, value)


def _send(url: str, key: str, method: str, params: Any) -> int:
    try:
        return send_request(url, key, "2025-06-18", method, params).status_code
    except UnicodeEncodeError:
        return 400
