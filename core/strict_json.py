"""Strict parsing of untrusted JSON, with a sentence for each fault. Pure."""

import json
import math
from collections.abc import Iterator
from typing import Any, NoReturn

from core.text import find_fault

MAX_DEPTH, MAX_VALUES = 20, 50_000
MAX_INTEGER = 2**63 - 1


class JsonFault(ValueError):
    """Why the text is refused; `line` counts from 1, None when it is not about a line."""

    def __init__(self, message: str, *, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def load_object(text: str) -> dict[str, Any]:
    """The JSON object that the text is. Raises JsonFault for anything else.

    Refused are also NaN, numbers of more than 64 bits, more than MAX_DEPTH levels or MAX_VALUES
    values, and texts with a fault (`find_fault`).
    """
    try:
        value = json.loads(
            text, parse_constant=_reject_constant, parse_float=_parse_float, parse_int=_parse_int
        )
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        raise JsonFault(f"This is not valid JSON: {error.msg}.", line=error.lineno) from None
    except ValueError as error:
        raise JsonFault(f"This is not valid JSON: {error}.") from None
    if not isinstance(value, dict):
        raise JsonFault("Send a JSON object: `{…}`.")
    for one in _strings_in(value):
        if fault := find_fault(one):
            raise JsonFault(fault)
    return value


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _parse_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _parse_int(text: str) -> int:
    if len(text) > 20 or abs(int(text)) > MAX_INTEGER:
        raise ValueError("a number is too large")
    return int(text)


def _strings_in(value: Any) -> Iterator[str]:
    """Every string in it, keys included; iterative, so deep nesting cannot overflow the stack."""
    rest, count = [(value, 1)], 0
    while rest:
        item, depth = rest.pop()
        count += 1
        if depth > MAX_DEPTH:
            raise _too_deep()
        if count + len(rest) > MAX_VALUES:
            raise JsonFault(f"The JSON has more than {MAX_VALUES:,} values. Send less at once.")
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            rest.extend((part, depth + 1) for pair in item.items() for part in pair)
        elif isinstance(item, list):
            rest.extend((part, depth + 1) for part in item)


def _too_deep() -> JsonFault:
    return JsonFault(f"The JSON is nested too deeply: more than {MAX_DEPTH} levels.")
