"""The REST door's own rules: what a body may be, how lists are paged, how errors look."""

import json
import logging
import math
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from django.conf import settings
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import DataError, InterfaceError, InternalError, OperationalError
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from rest_framework import exceptions
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.correlation import request_id
from accounts.errors import AceError, Invalid, RateLimited, TooLarge

logger = logging.getLogger(__name__)
MAX_DEPTH = 20
# PostgreSQL ends an idle transaction with an InternalError.
NO_DATABASE = (OperationalError, InternalError, InterfaceError)
MAX_INTEGER = 2**63 - 1


class StrictJSONParser(BaseParser):
    """Takes one JSON object in UTF-8, and says in a sentence what is wrong with anything else."""

    media_type = "application/json"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        # Read here and not trusted to Content-Length: a chunked body declares none.
        body = stream.read(settings.MAX_BODY_BYTES + 1)
        if len(body) > settings.MAX_BODY_BYTES:
            raise TooLarge(f"The request body is over {settings.MAX_BODY_BYTES} bytes.")
        return read_object(body) if body.strip() else {}


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object in these bytes. Raises Invalid with a sentence for anything else."""
    try:
        value = json.loads(
            body.decode(), parse_constant=_refuse, parse_float=_finite, parse_int=_whole
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
    for text in _texts(value):
        _check_text(text)
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _whole(text: str) -> int:
    if len(text) > 20 or abs(int(text)) > MAX_INTEGER:
        raise ValueError("a number is too large")
    return int(text)


def _texts(value: Any) -> Iterator[str]:
    """Every text in it, keys included; without recursion, so that depth cannot hurt."""
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


class CursorPages(CursorPagination):
    """`{"next", "previous", "results"}`; the view names its `ordering`."""

    page_size = 50
    max_page_size = 100
    page_size_query_param = "page_size"

    def get_page_size(self, request: Request) -> int:
        text = request.query_params.get("page_size", "")
        if not text:
            return self.page_size
        if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
            raise Invalid.field("page_size", f"Send a whole number, 1 to {self.max_page_size}.")
        return min(int(text), self.max_page_size)

    def get_ordering(self, request: Request, queryset: QuerySet[Any], view: Any) -> tuple[str, ...]:
        return tuple(view.ordering)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """For the OpenAPI document: all three are always there."""
        page = {"type": "string", "format": "uri", "nullable": True}
        more = {"description": "The address of the next page; null: this is the last one."}
        less = {"description": "The address of the page before; null: this is the first one."}
        properties = {
            "next": page | more,
            "previous": page | less,
            "results": schema,
        }
        return {"type": "object", "required": list(properties), "properties": properties}

    def decode_cursor(self, request: Request) -> Cursor | None:
        """The cursor in the query string, or None. Raises Invalid for one that we never gave."""
        try:
            cursor = super().decode_cursor(request)
        except exceptions.NotFound:
            raise _bad_cursor() from None
        # base64 skips what it does not know, so that junk decodes to nothing at all.
        if cursor is not None and not any(cursor):
            raise _bad_cursor()
        return cursor

    def paginate_queryset(
        self, queryset: Any, request: Request, view: Any = None
    ) -> list[Any] | None:
        try:
            return super().paginate_queryset(queryset, request, view)
        except (ValidationError, ValueError, OverflowError):
            # A position that is no value of the ordering column.
            raise _bad_cursor() from None


def _bad_cursor() -> Invalid:
    return Invalid.field("cursor", "This cursor is not one of ours. Start without one.")


def handle_error(error: Exception, context: dict[str, Any]) -> Response | None:
    """Every refusal in one shape. None for what nobody expected: Django logs it and answers 500."""
    known = as_ace_error(error)
    if known is None:
        return None
    response = Response(error_body(known), status=known.status)
    if known.status == 401:
        response["WWW-Authenticate"] = "Bearer"
    if isinstance(known, RateLimited):
        response["Retry-After"] = str(known.retry_after)
    if isinstance(error, NO_DATABASE):
        response["Retry-After"] = "1"
    return response


def error_body(error: AceError) -> dict[str, Any]:
    """`{"error": {"code", "message", "fields"?}, "request_id"}`."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.fields:
        body["fields"] = error.fields
    return {"error": body, "request_id": request_id.get()}


def as_ace_error(error: Exception) -> AceError | None:
    """The error in our words, or None when it is a fault of ours."""
    match error:
        case AceError():
            return error
        case exceptions.ValidationError():
            return _from_fields(error)
        case Http404():
            return _plain(404, "not_found", "There is nothing at this address.")
        case PermissionDenied():
            return _plain(403, "forbidden", "This is not allowed.")
        case exceptions.APIException():
            return _plain(error.status_code, _code(error), str(error.detail))
        case _:
            return _from_database(error)


def _from_database(error: Exception) -> AceError | None:
    if isinstance(error, DataError):
        logger.warning("The database refused a value: %s", type(error.__cause__).__name__)
        return Invalid("A value is out of range or malformed. Check numbers and texts.")
    if isinstance(error, NO_DATABASE):
        logger.exception("The database could not answer")
        return _plain(503, "busy", "The database is busy. Try again in a moment.")
    return None


def _plain(status: int, code: str, message: str) -> AceError:
    error = AceError(message, code=code)
    error.status = status
    return error


def _code(error: exceptions.APIException) -> str:
    return {405: "method_not_allowed", 415: "unsupported_media_type"}.get(
        error.status_code, str(error.default_code)
    )


def _from_fields(error: exceptions.ValidationError) -> Invalid:
    fields = dict(_flatten(error.detail))
    first = next(iter(fields), "body")
    return Invalid(f"Check `{first}`: {fields.get(first, [''])[0]}", fields=fields)


def _flatten(detail: Any, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """`{"operations": [{}, {"type": ["…"]}]}` as `("operations.1.type", ["…"])`."""
    if isinstance(detail, dict):
        for name, part in detail.items():
            yield from _flatten(part, f"{path}.{name}" if path else str(name))
    elif isinstance(detail, list) and any(isinstance(part, dict) for part in detail):
        for index, part in enumerate(detail):
            yield from _flatten(part, f"{path}.{index}")
    else:
        yield path or "body", [str(part) for part in detail]


def no_such_route(request: HttpRequest, rest: str = "") -> HttpResponse:
    """What every unknown address under /api/v1 answers, whoever asks."""
    return _json(_plain(404, "not_found", "There is no such route. See /api/docs."))


def _json(error: AceError) -> HttpResponse:
    return JsonResponse(error_body(error), status=error.status)
