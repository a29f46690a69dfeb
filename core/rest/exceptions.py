"""Errors as REST responses: `{"error": {…}, "request_id"}`."""

import logging
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db import DataError, InterfaceError, InternalError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import resolve
from django.views.decorators.csrf import csrf_exempt
from rest_framework import exceptions, serializers
from rest_framework.response import Response

from core.errors import AceError, Invalid
from core.http.request_id import request_id
from core.sql.storage_errors import log_storage_error, storage_error

logger = logging.getLogger(__name__)
# PostgreSQL ends an idle transaction with an InternalError.
DATABASE_UNAVAILABLE_ERRORS = (OperationalError, InternalError, InterfaceError)


class ErrorDetailSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="Stable; for programs.")
    message = serializers.CharField(help_text="A sentence that says what to do.")
    fields = serializers.DictField(  # type: ignore[assignment]  # the API's name for it
        child=serializers.ListField(child=serializers.CharField()), required=False
    )


class ErrorSerializer(serializers.Serializer[Any]):
    """The body of every error response."""

    error = ErrorDetailSerializer()
    request_id = serializers.CharField(help_text="Also in the X-Request-ID header.")


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """The response for an error; None for unexpected ones, which Django logs as a 500."""
    known = to_ace_error(error)
    if known is None:
        return None
    response = Response(error_body(known), status=known.status, headers=dict(known.headers))
    if known.status == 401:
        response["WWW-Authenticate"] = "Bearer"
    return response


def error_body(error: AceError) -> dict[str, Any]:
    """`{"error": {"code", "message", "fields"?}, "request_id"}`."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.fields:
        body["fields"] = error.fields
    return {"error": body, "request_id": request_id.get()}


def to_ace_error(error: Exception) -> AceError | None:
    """The AceError for any error, or None for an unexpected one (a bug)."""
    match error:
        case AceError():
            return error
        case exceptions.ValidationError():
            return _from_validation_error(error)
        case Http404():
            return _error(404, "not_found", "Nothing at this URL.")
        case PermissionDenied():
            return _error(403, "forbidden", "This isn't allowed.")
        case exceptions.APIException():
            return _error(error.status_code, _error_code(error), str(error.detail))
        case _:
            return _from_database_error(error)


def _from_database_error(error: Exception) -> AceError | None:
    failed = storage_error(error)
    if failed is not None:
        log_storage_error(failed, error)
        return failed
    if isinstance(error, DataError):
        logger.warning("The database rejected a value: %s", type(error.__cause__).__name__)
        return Invalid("A value is out of range or malformed. Check numbers and texts.")
    if isinstance(error, DATABASE_UNAVAILABLE_ERRORS):
        logger.exception("The database could not answer")
        busy = _error(503, "busy", "The database is busy. Try again in a moment.")
        busy.headers = {"Retry-After": "1"}
        return busy
    return None


def _error(status: int, code: str, message: str) -> AceError:
    error = AceError(message, code=code)
    error.status = status
    return error


def _error_code(error: exceptions.APIException) -> str:
    return {405: "method_not_allowed", 415: "unsupported_media_type"}.get(
        error.status_code, str(error.default_code)
    )


def _from_validation_error(error: exceptions.ValidationError) -> Invalid:
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


def _malformed_id(path: str) -> str:
    """What is wrong with a path that would be a route with another id in it; else empty."""
    parts = path.split("/")
    for place, part in enumerate(parts[3:9], start=3):
        for valid, kind in ((str(UUID(int=0)), "an ID (a UUID)"), ("1", "a version number")):
            found = resolve("/".join([*parts[:place], valid, *parts[place + 1 :]]))
            if found.func is not route_not_found:
                return f"“{part[:60]}” is not {kind}. Use one from the list."
    return ""


@csrf_exempt
def route_not_found(request: HttpRequest, rest: str = "") -> HttpResponse:
    """The 404 of every unknown URL under /api/v1, authenticated or not."""
    message = _malformed_id(request.path) or "No such route. See /api/docs."
    error = _error(404, "not_found", message)
    return JsonResponse(error_body(error), status=error.status)
