"""The base classes of REST views: principal, validated body, paginated lists, operations."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, wraps
from itertools import islice
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import (
    BaseSerializer,
    ChoiceField,
    ListField,
    ListSerializer,
    Serializer,
)
from rest_framework.viewsets import GenericViewSet

from core.errors import Invalid, NotAuthenticated
from core.http.reauthentication import require_recent_login
from core.near_misses import understand_fields
from core.ratelimit.limits import Allowance, count_request
from core.rest.idempotency import run_once
from core.security.scopes import Principal, Scope

MAX_INTEGER = 2_147_483_647
POSITIVE = {"type": "integer", "minimum": 1, "maximum": MAX_INTEGER}
"""What `query_integer` takes, for the OpenAPI document."""
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="A retry with the same key gets the same response.",
)
_shared_serializer = cache(lambda serializer_class: serializer_class())


class BaseViewSet(GenericViewSet[Any]):
    """The operations of one resource; `route` says which of them a URL serves."""

    ordering: tuple[str, ...] = ("-created_at", "-id")
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
        self, serializer_class: type[Serializer[Any]], *, partial: bool, forgiving: bool
    ) -> dict[str, Any]:
        """The request body as validated by the serializer. Raises Invalid with the fields.

        `partial`: no field is required. `forgiving`: slips are in `warnings`, not refused.
        """
        data, warnings = self.request.data, list[str]()
        serializer = serializer_class(data=data, partial=partial)
        if forgiving and isinstance(data, Mapping):
            fields = serializer.fields
            lists = [name for name, field in fields.items() if isinstance(field, ListField)]
            data, warnings, _ = understand_fields(data, of="This", known=fields, lists=lists)
            serializer.initial_data = data
        # A misspelt field must not be dropped silently: a citation would be lost.
        unknown = dict(islice(_unknown_fields(serializer, data), 10))
        if unknown:
            name, lines = next(iter(unknown.items()))
            raise Invalid(f"Check `{name}`: {lines[0]}", fields=unknown)
        if not serializer.is_valid():
            raise ValidationError(with_choices(serializer, serializer.errors))
        return dict(serializer.validated_data) | ({"warnings": warnings} if forgiving else {})

    def paginate(
        self,
        rows: QuerySet[Any, Any],
        serializer_class: type[BaseSerializer[Any]],
        *,
        ordering: tuple[str, ...] = (),
    ) -> Response:
        """One cursor page of the rows, newest first by default."""
        self.ordering = ordering or self.ordering
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

    def query_choice(self, name: str, known: Sequence[str]) -> str:
        """A query parameter that is one of `known`, by default the first. Raises Invalid."""
        word = str(self.request.query_params.get(name, known[0])).lower()
        if word not in known:
            raise Invalid.field(name, f"Choose one of: {', '.join(known)}.")
        return word

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


def route(where: str, viewset: type[BaseViewSet], **operations: Any) -> URLPattern:
    """A URL with the operation of each method: `route("things", Things, get="list_things")`."""
    return path(where, viewset.as_view(operations))


def operation(
    scope: Scope | None,
    gives: Any,
    *,
    takes: type[Serializer[Any]] | None = None,
    partial: bool = False,
    forgiving: bool = False,
    once: bool = False,
    secret: bool = False,
    prepared: bool = False,
    recent_login: bool = False,
    parameters: Sequence[Any] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """One operation of a viewset; the method's name is its id in the OpenAPI document.

    `scope` is what the credential needs; None: public. `gives` is a serializer, or serializers by
    status: the first one renders what the method returns, unless that is a response. The body as
    validated by `takes` is passed as `sent`: see `validated_body`. `once` honours an
    `Idempotency-Key`; with `secret` it does not keep the response. `prepared` does too,
    of a method that returns what writes: it runs before the transaction of that key.
    `recent_login` requires a login within the last minutes, before the body is validated.
    """
    once = once or prepared

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def handle(view: BaseViewSet, request: Request, **kwargs: Any) -> HttpResponseBase:
            if recent_login:
                require_recent_login(view.principal)
            if takes is not None:
                kwargs["sent"] = view.validated_body(takes, partial=partial, forgiving=forgiving)
            work = method(view, **kwargs) if prepared else lambda: method(view, **kwargs)
            if not once:
                return _response(work(), gives)
            return run_once(view.principal, request, lambda: _response(work(), gives), secret)

        handle.scope = scope  # type: ignore[attr-defined]  # read by HasScope
        described: Callable[..., Any] = extend_schema(
            operation_id=method.__name__,
            request=takes,
            responses=gives,
            parameters=[*parameters, *([IDEMPOTENCY_KEY] if once else ())],
        )(handle)
        return described

    return decorate


def _response(made: Any, gives: Any) -> HttpResponseBase:
    """What a method returned, rendered by the first serializer of its operation."""
    if isinstance(made, HttpResponseBase):
        return made
    by_status = gives if isinstance(gives, dict) else {200: gives}
    status, serializer_class = next(iter(by_status.items()))
    return Response(represent(made, serializer_class) if serializer_class else None, status=status)


def represent(made: Any, serializer_class: type[Serializer[Any]]) -> Any:
    """What the serializer shows of it, by the one serializer that all responses share.

    DRF copies every field for each new one, a fifth of what a reading costs.
    """
    return _shared_serializer(serializer_class).to_representation(made)


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


def with_choices(field: Any, errors: Any) -> Any:
    """The errors of a field or serializer; that of an unknown choice lists the choices."""
    if isinstance(errors, dict):
        fields = getattr(field, "fields", {})
        child = getattr(field, "child", None)
        return {name: with_choices(fields.get(name, child), e) for name, e in errors.items()}
    if isinstance(field, ChoiceField) and errors[0].code == "invalid_choice":
        return [f"Choose one of: {', '.join(map(str, field.choices))}."]
    return errors
