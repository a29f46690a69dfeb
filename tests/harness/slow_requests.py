"""Requests that are small and meant to be slow: what one costs in CPU, and which was the slowest.

A request is measured on the clock of its process, and again when it seems slow: the tests share
their machine. `ACE_FUZZ_SLOW=1` sends every family to every field, otherwise a sample is sent.
"""

import gc
import json
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

BUDGET = 0.25
"""Seconds of CPU that a request may cost."""
EVERY = bool(os.environ.get("ACE_FUZZ_SLOW"))
SEED = int(os.environ.get("ACE_FUZZ_SEED", "1"))
SIZES = (1_900, 19_000, 200_000)


def _marks(size: int) -> str:
    return "a" + "\u0315" * (size // 2) + "\u0300" * (size // 2)


def _nested(size: int) -> str:
    return "[x " * (size // 28) + "] helpful=0 harmful=0 :: " * (size // 28)


def _repeated(unit: str, size: int) -> str:
    return (unit * size)[:size]


UNITS = {
    "lone surrogates": "\ud800",
    "thirty marks": "a" + "\u0315" * 15 + "\u0300" * 15,
    "hidden marks": "\uff9e\u0300",
    "wide letters": "\ufdfa",
    "repeated words": "a ",
    "two words": "a b ",
    "spaces": " ",
    "lines": "\n",
    "hashes": "#",
    "digits": "9",
    "brackets": "[",
    "closed brackets": "[] ",
    "forged lines": "[x] helpful=0 harmful=0 :: ",
    "ids": "str-00001, ",
    "dots": "a.",
    "dashes": "- ",
    "fences": "```\n",
    "cyrillic": "\u0430",
    "ampersands": "&",
    "slashes": "/",
    "lessons": "lesson: always check a, ",
    "conditions": "when a, ",
    "secrets": "sk-ant-",
    "key blocks": "-----BEGIN PRIVATE KEY-----",
}
FAMILIES: dict[str, Callable[[int], str]] = {
    **{name: partial(_repeated, unit) for name, unit in UNITS.items()},
    "marks in order": _marks,
    "nested forgeries": _nested,
    "different words": lambda size: " ".join(map(str, range(size // 6))),
}


FRAMES = 25
"""Between two tries: the next one's loops lie elsewhere in their chunk."""


@dataclass(frozen=True)
class Measured:
    """A request, its answer's status, and what it cost in seconds of CPU."""

    seconds: float
    status: int
    name: str

    def __str__(self) -> str:
        return f"{1000 * self.seconds:.0f} ms, {self.status}: {self.name}"


def deeper(frames: int, call: Callable[[], Measured]) -> Measured:
    """The result of the call, made so many frames further down.

    CPython 3.11 keeps frames in chunks of 16 KB, and gives the last one back when it is empty: a
    loop whose calls cross that border maps memory for each (117 ms became 690 under xdist).
    """
    return deeper(frames - 1, call) if frames else call()


class Stopwatch:
    """Measures requests, and refuses those that fail or take too long."""

    def __init__(self) -> None:
        self.requests: list[Measured] = []
        # As in production (config/apps.py): else each request would pay for walks
        # over what a thousand tests before it have left.
        gc.collect()
        gc.freeze()

    def send(self, name: str, request: Callable[[], int]) -> int:
        """The status; AssertionError for a 5xx, and for one over the BUDGET three times."""
        found = min(
            (
                deeper(FRAMES * number, lambda: self._once(name, request))
                for number in self._tries()
            ),
            key=lambda measured: measured.seconds,
        )
        self.requests.append(found)
        assert found.status < 500, str(found)
        assert found.seconds <= BUDGET, str(found)
        return found.status

    def _tries(self) -> Iterator[int]:
        for attempt in range(3):
            self._slow = False
            yield attempt
            if not self._slow:
                return

    def _once(self, name: str, request: Callable[[], int]) -> Measured:
        start = time.process_time()
        status = request()
        found = Measured(time.process_time() - start, status, name)
        self._slow = found.seconds > BUDGET
        return found

    def report(self) -> None:
        """Print the slowest."""
        slowest = sorted(self.requests, key=lambda m: -m.seconds)[:5]
        print(f"{len(self.requests)} requests; the slowest:", *slowest, sep="\n  ")


def cases(names: list[str]) -> Iterator[tuple[str, str, int]]:
    """A field's name, a family and a size: all of them, or for half of the names one by chance."""
    chance = random.Random(SEED)
    for name in names if EVERY else chance.sample(names, (len(names) + 1) // 2):
        every = [(family, size) for family in FAMILIES for size in SIZES]
        for family, size in every if EVERY else chance.sample(every, 1):
            yield name, family, size


def fields_of(body: Any, *path: str | int) -> Iterator[tuple[str | int, ...]]:
    """The path to every text, number and list in a body."""
    if path and not isinstance(body, dict):
        yield path
    items: Any = body.items() if isinstance(body, dict) else ()
    for name, value in enumerate(body) if isinstance(body, list) else items:
        yield from fields_of(value, *path, name)


def with_value(body: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """A copy of the body with this value at the path."""
    if not path:
        return value
    copy: Any = list(body) if isinstance(body, list) else dict(body)
    copy[path[0]] = with_value(body[path[0]], path[1:], value)
    return copy


def to_json(body: Any) -> bytes:
    """Its JSON in UTF-8; lone surrogates are escaped."""
    try:
        return json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(body).encode()


FLOODS: dict[str, Any] = {
    "a hundred thousand objects": [{}] * 100_000,
    "a hundred thousand numbers": [1] * 100_000,
    "deep nesting": json.loads("[" * 900 + "]" * 900),
    "a long integer": 10**4000,
    "a thousand keys": {f"key{n}": n for n in range(1000)},
}
