"""Strict parsing of JSON request bodies, with an error message for each fault."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from django.conf import settings
from rest_framework.parsers import BaseParser

from core.errors import Invalid, TooLarge

MAX_DEPTH = 20
MAX_INTEGER = 2**63 - 1


class StrictJSONParser(BaseParser):
    """Accepts one JSON object in UTF-8 of at most MAX_BODY_BYTES."""

    media_type = "application/json"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        # Checked here, not by Content-Length: a chunked body has none.
        body = stream.read(settings.MAX_BODY_BYTES + 1)
        if len(body) > settings.MAX_BODY_BYTES:
            raise TooLarge(f"The request body is over {settings.MAX_BODY_BYTES} bytes.")
        return parse_json_object(body) if body.strip() else {}


def parse_json_object(body: bytes) -> dict[str, Any]:
    """The JSON object in these bytes. Raises Invalid for anything else."""
    try:
        value = json.loads(
            body.decode(),
            parse_constant=_reject_constant,
            parse_float=_parse_float,
            parse_int=_parse_int,
        )
    except UnicodeDecodeError:
        raise Invalid("The body is not UTF-8. Send JSON in UTF-8.", code="bad_json") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise Invalid(f"The body is not valid JSON: {reason}.", code="bad_json") from None
    if not isinstance(value, dict):
        raise Invalid("Send a JSON object: `{…}`.", code="bad_json")
    for text in _strings_in(value):
        _check_text(text)
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
    rest = [(value, 1)]
    while rest:
        item, depth = rest.pop()
        if depth > MAX_DEPTH:
            raise _too_deep()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            rest.extend((part, depth + 1) for pair in item.items() for part in pair)
        elif isinstance(item, list):
            rest.extend((part, depth + 1) for part in item)


def _check_text(text: str) -> None:
    if "\x00" in text:
        raise Invalid("A text contains a NUL character. Remove it.", code="bad_json")
    try:
        text.encode()
    except UnicodeEncodeError:
        message = "A text contains a lone surrogate, which is not valid Unicode. Remove it."
        raise Invalid(message, code="bad_json") from None


def _too_deep() -> Invalid:
    return Invalid(f"The JSON is nested more than {MAX_DEPTH} levels deep.", code="bad_json")
