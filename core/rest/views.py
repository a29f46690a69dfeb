"""What every REST route shares: who asks, what was sent, and how lists are cut into pages."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import BaseSerializer, ListSerializer, Serializer

from core.errors import Invalid, NotAuthenticated
from core.http import requests
from core.security.scopes import Principal, Scope

MAX_INTEGER = 2_147_483_647


class BaseAPIView(GenericAPIView[Any]):
    """A REST route. `scopes` says what each of its methods needs; None means public."""

    scopes: ClassVar[Mapping[str, Scope | None]] = {}
    ordering: ClassVar[tuple[str, ...]] = ("-created_at", "-id")
    # No OPTIONS: browsers' preflights are answered before a view is reached.
    http_method_names = ("get", "post", "put", "patch", "delete", "head")

    @property
    def principal(self) -> Principal:
        """The credential in use. Raises NotAuthenticated on a public route without one."""
        if not isinstance(self.request.auth, Principal):
            raise NotAuthenticated
        return self.request.auth

    def validated_body(
        self, serializer_class: type[Serializer[Any]], *, partial: bool = False
    ) -> dict[str, Any]:
        """The request's body in this shape; what does not fit becomes a 400 with its fields.

        `partial`: only the fields that were sent, none of them required.
        """
        serializer = serializer_class(data=self.request.data, partial=partial)
        # A misspelt field must not be dropped in silence: a citation would be lost.
        unknown = dict(islice(_unknown_fields(serializer, self.request.data), 10))
        if unknown:
            raise Invalid("There is a field that this route does not know.", fields=unknown)
        serializer.is_valid(raise_exception=True)
        sent: dict[str, Any] = serializer.validated_data
        return sent

    def paginate(
        self, rows: QuerySet[Any, Any], serializer_class: type[BaseSerializer[Any]]
    ) -> Response:
        """One cursor page of the rows, in `ordering`."""
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(serializer_class(page, many=True).data)

    def query_integer(self, name: str, *, default: int | None = None) -> int | None:
        """A positive whole number from the query string. Raises Invalid."""
        text = self.request.query_params.get(name, "")
        if not text:
            return default
        if not (
            text.isascii() and text.isdigit() and len(text) <= 10 and 0 < int(text) <= MAX_INTEGER
        ):
            raise Invalid.field(name, "Send a whole number from 1 up.")
        return int(text)

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        # DRF takes a body of undeclared length for none; the parser stops at the same limit.
        if request.META.get("HTTP_TRANSFER_ENCODING") and not request.META.get("CONTENT_LENGTH"):
            request.META["CONTENT_LENGTH"] = str(settings.MAX_BODY_BYTES + 1)
        return super().initialize_request(request, *args, **kwargs)

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        response = super().finalize_response(request, response, *args, **kwargs)
        response["Cache-Control"] = "no-store"
        return response


def _unknown_fields(shape: Any, sent: Any, where: str = "") -> Iterator[tuple[str, list[str]]]:
    """Each field, at whatever depth, that its shape does not have; with those that it has."""
    if isinstance(shape, ListSerializer):
        for index, item in enumerate(sent if isinstance(sent, list) else ()):
            yield from _unknown_fields(shape.child, item, f"{where}{index}.")
    elif isinstance(shape, Serializer) and isinstance(sent, Mapping):
        known = f"Send only: {', '.join(shape.fields)}."
        for name in sorted(set(sent) - set(shape.fields)):
            yield f"{where}{name[:100]}", [known]
        for name, field in shape.fields.items():
            yield from _unknown_fields(field, sent.get(name), f"{where}{name}.")


def client_address(request: Request) -> str:
    """The network address that limits on signing in count by."""
    return requests.client_address(request._request)


def site_url(request: Request) -> str:
    """The address that links in letters begin with."""
    return requests.site_url(request._request)
