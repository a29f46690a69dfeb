"""The base class of REST views: principal, validated body, paginated lists."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, ClassVar

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from rest_framework.exceptions import ValidationError
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import (
    BaseSerializer,
    ChoiceField,
    ListField,
    ListSerializer,
    Serializer,
)

from core.errors import Invalid, NotAuthenticated
from core.ratelimit.limits import Allowance, count_request
from core.security.scopes import Principal, Scope

MAX_INTEGER = 2_147_483_647
POSITIVE = {"type": "integer", "minimum": 1, "maximum": MAX_INTEGER}
"""What `query_integer` takes, for the OpenAPI document."""


class BaseAPIView(GenericAPIView[Any]):
    """A REST route. `scopes` is the scope that each method requires; None means public."""

    scopes: ClassVar[Mapping[str, Scope | None]] = {}
    ordering: ClassVar[tuple[str, ...]] = ("-created_at", "-id")
    allowance: Allowance | None = None
    # No OPTIONS: CORS preflights are answered by middleware.
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
        """The request body as validated by the serializer. Raises Invalid with the fields.

        `partial`: no field is required.
        """
        serializer = serializer_class(data=self.request.data, partial=partial)
        # A misspelt field must not be dropped silently: a citation would be lost.
        unknown = dict(islice(_unknown_fields(serializer, self.request.data), 10))
        if unknown:
            name, lines = next(iter(unknown.items()))
            raise Invalid(f"Check `{name}`: {lines[0]}", fields=unknown)
        if not serializer.is_valid():
            raise ValidationError(_with_choices(serializer))
        return dict(serializer.validated_data)

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
        # DRF treats a body of undeclared length as empty; the parser enforces the same limit.
        if request.META.get("HTTP_TRANSFER_ENCODING") and not request.META.get("CONTENT_LENGTH"):
            request.META["CONTENT_LENGTH"] = str(settings.MAX_BODY_BYTES + 1)
        return super().initialize_request(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Authenticate, and count the request against its user's limit."""
        super().initial(request, *args, **kwargs)
        if isinstance(request.auth, Principal):
            self.allowance = count_request(request.auth.user.pk)
            self.allowance.check()

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        response = super().finalize_response(request, response, *args, **kwargs)
        response["Cache-Control"] = "no-store"
        for name, value in self.allowance.headers.items() if self.allowance else ():
            response[name] = value
        return response


def _unknown_fields(serializer: Any, sent: Any, where: str = "") -> Iterator[tuple[str, list[str]]]:
    """Each field, at any depth, that the serializer lacks, with a list of those that it has.

    And each list that is too long, whose items are not looked at: DRF would validate them first.
    """
    if isinstance(serializer, ListSerializer | ListField):
        items = sent if isinstance(sent, list) else []
        most: int | None = getattr(serializer, "max_length", None)
        if most is not None and len(items) > most:
            yield where.rstrip("."), [f"Send at most {most}."]
        elif isinstance(serializer, ListSerializer):
            for index, item in enumerate(items):
                yield from _unknown_fields(serializer.child, item, f"{where}{index}.")
    elif isinstance(serializer, Serializer) and isinstance(sent, Mapping):
        known = f"Unknown field; send only: {', '.join(serializer.fields)}."
        for name in sorted(set(sent) - set(serializer.fields)):
            yield f"{where}{name[:100]}", [known]
        for name, field in serializer.fields.items():
            yield from _unknown_fields(field, sent.get(name), f"{where}{name}.")


def _with_choices(serializer: Serializer[Any]) -> Any:
    """The errors; that of an unknown choice lists the choices."""
    errors: Any = dict(serializer.errors)
    for name, field in serializer.fields.items():
        found = errors.get(name)
        if isinstance(field, ChoiceField) and found and found[0].code == "invalid_choice":
            errors[name] = [f"Choose one of: {', '.join(map(str, field.choices))}."]
    return errors
