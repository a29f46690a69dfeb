"""Cursor pagination of REST lists."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from rest_framework import exceptions
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

from core.errors import Invalid


class StandardCursorPagination(CursorPagination):
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

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """For the OpenAPI document: a page has at least one row."""
        parameters: list[dict[str, Any]] = super().get_schema_operation_parameters(view)
        for parameter in parameters:
            if parameter["name"] == self.page_size_query_param:
                parameter["schema"]["minimum"] = 1
        return parameters

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """For the OpenAPI document: all three fields are always present."""
        page = {"type": "string", "format": "uri", "nullable": True}
        more = {"description": "URL of the next page; null on the last one."}
        less = {"description": "URL of the previous page; null on the first one."}
        properties = {"next": page | more, "previous": page | less, "results": schema}
        return {"type": "object", "required": list(properties), "properties": properties}

    def decode_cursor(self, request: Request) -> Cursor | None:
        """The cursor in the query string, or None. Raises Invalid for a malformed one."""
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
            # The position is not a value of the ordering column.
            raise _bad_cursor() from None


def _bad_cursor() -> Invalid:
    return Invalid.field("cursor", "Invalid cursor. Start without one.")
