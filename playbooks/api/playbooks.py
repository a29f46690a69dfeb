"""Whole playbooks: list, read, change, copy."""

from typing import Any, ClassVar
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import Invalid
from accounts.idempotency import idempotent
from accounts.rest import Door
from accounts.scopes import Principal, Scope
from playbooks import services
from playbooks import shapes as s
from playbooks.document import Section
from playbooks.exporting import export_file
from playbooks.formats import FORMATS
from playbooks.models import Playbook
from playbooks.querysets import PlaybookQuerySet

STATUSES = (*Playbook.Status.values, "all")


class PlaybooksDoor(Door):
    """GET, POST /playbooks."""

    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.WRITE}

    @extend_schema(
        operation_id="list_playbooks",
        parameters=[
            OpenApiParameter("status", str, enum=STATUSES, default="active"),
            OpenApiParameter("include_starters", bool, default=False),
            OpenApiParameter("query", str, description="Words in the name or the description."),
        ],
        responses=s.PlaybookShape(many=True),
    )
    def get(self, request: Request) -> Response:
        """Your playbooks, newest first; starters too if you ask for them."""
        starters = one_of(request, "include_starters", ("false", "true")) == "true"
        status = one_of(request, "status", STATUSES)
        rows = shown(self.who, include_starters=starters)
        if status != "all":
            rows = rows.filter(status=status)
        rows = rows.matching(request.query_params.get("query", ""))
        return self.page(rows, s.PlaybookShape)

    @extend_schema(
        operation_id="create_playbook", request=s.PlaybookIn, responses={201: s.PlaybookShape}
    )
    @idempotent()
    def post(self, request: Request) -> Response:
        """Create an empty playbook, with the default sections or your own."""
        sent = self.sent(s.PlaybookIn)
        sent["sections"] = [
            Section(**{**section, "aliases": tuple(section["aliases"])})
            for section in sent["sections"]
        ]
        return made(services.create_playbook(by=self.who, **sent))


class PlaybookDoor(Door):
    """GET, PUT, PATCH, DELETE /playbooks/{id}."""

    scopes: ClassVar = {
        "GET": Scope.READ,
        "PUT": Scope.WRITE,
        "PATCH": Scope.WRITE,
        "DELETE": Scope.WRITE,
    }

    @extend_schema(
        operation_id="get_playbook",
        parameters=[
            OpenApiParameter("section", str, description="Only this one: its key or title."),
            OpenApiParameter("version", int, description="An older version."),
            OpenApiParameter(
                "max_tokens", int, description="Only the most useful bullets that fit (estimate)."
            ),
        ],
        responses=s.ReadingShape,
    )
    def get(self, request: Request, pk: UUID) -> Response:
        """One playbook with its advice, as agents read it. Reading changes nothing."""
        playbook = readable(self.who).fetch(pk)
        reading = services.read_playbook(
            playbook=playbook,
            by=self.who,
            section=request.query_params.get("section", ""),
            version=self.number("version"),
            max_tokens=self.number("max_tokens"),
        )
        body = s.FaceShape(playbook).data
        read = {
            "current_version": body["version"],
            "version": reading.version,
            "serving_id": reading.serving_id,
            "content": reading.content,
            "left_out": s.LeftOutShape(reading.left_out, many=True).data,
        }
        return Response({**body, **read})

    @extend_schema(operation_id="put_playbook", request=s.PlaybookPut, responses=s.PlaybookShape)
    def put(self, request: Request, pk: UUID) -> Response:
        """Replace name, description and settings; what is left out gets its default."""
        return self._update(pk, self.sent(s.PlaybookPut))

    @extend_schema(operation_id="update_playbook", request=s.PlaybookPut, responses=s.PlaybookShape)
    def patch(self, request: Request, pk: UUID) -> Response:
        """Change name, description or settings; what is left out stays."""
        return self._update(pk, self.sent(s.PlaybookPut, partial=True))

    @extend_schema(operation_id="archive_playbook", responses={204: None})
    def delete(self, request: Request, pk: UUID) -> Response:
        """Archive the playbook; nothing is lost, and PATCH `status` restores it."""
        playbook = Playbook.objects.for_user(self.who).fetch(pk)
        services.archive_playbook(playbook=playbook, by=self.who)
        return Response(status=204)

    @transaction.atomic
    def _update(self, pk: UUID, sent: dict[str, Any]) -> Response:
        playbook = Playbook.objects.for_user(self.who).fetch(pk)
        status = sent.pop("status", playbook.status)
        playbook = services.update_playbook(playbook=playbook, by=self.who, **sent)
        if status != playbook.status:
            archived = status == Playbook.Status.ARCHIVED
            change = services.archive_playbook if archived else services.restore_playbook
            change(playbook=playbook, by=self.who)
        return made(playbook, status=200)


class CloneDoor(Door):
    """POST /playbooks/{id}/clone."""

    scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="clone_playbook", request=s.CloneIn, responses={201: s.PlaybookShape}
    )
    @idempotent()
    def post(self, request: Request, pk: UUID) -> Response:
        """Copy a starter, or a playbook of yours, into a new one that you own."""
        playbook = Playbook.objects.for_user(self.who, include_starters=True).fetch(pk)
        sent = self.sent(s.CloneIn)
        return made(services.clone_playbook(playbook=playbook, by=self.who, **sent))


class ImportDoor(Door):
    """POST /playbooks/import."""

    scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="import_playbook", request=s.ImportIn, responses={201: s.PlaybookShape}
    )
    @idempotent()
    def post(self, request: Request) -> Response:
        """Make a playbook from ACE text."""
        sent = self.sent(s.ImportIn)
        sent.pop("version", None)
        return made(services.import_playbook(by=self.who, **sent))


class ExportDoor(Door):
    """GET /playbooks/{id}/export."""

    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(
        operation_id="export_playbook",
        parameters=[
            OpenApiParameter("version", int, description="An older version."),
            OpenApiParameter(
                "format",
                str,
                enum=list(FORMATS),
                default="ace",
                description="Other than `ace`: the file itself. /playbooks/import takes `json`"
                " as its `text`.",
            ),
        ],
        responses=s.ExportShape,
    )
    def get(self, request: Request, pk: UUID) -> Response | HttpResponse:
        """The playbook as ACE text, in a shape that /playbooks/import takes; or as a file."""
        playbook = readable(self.who).fetch(pk)
        number = self.number("version")
        wanted = one_of(request, "format", tuple(FORMATS))
        if wanted != "ace":
            return as_file(playbook, wanted, number)
        text = services.export_playbook(playbook=playbook, version=number)
        current = s.FaceShape(playbook).data
        body = {name: current[name] for name in ("name", "description", "version")}
        return Response({**body, "version": number or body["version"], "text": text})


def as_file(playbook: Playbook, format_name: str, number: int | None) -> HttpResponse:
    file = export_file(playbook=playbook, format_name=format_name, version=number)
    return HttpResponse(file.body, content_type=file.content_type)


def readable(who: Principal) -> PlaybookQuerySet:
    """The playbooks that `who` may read, starters included, with their current version."""
    rows: PlaybookQuerySet = Playbook.objects.for_user(who, include_starters=True)
    return rows.select_related("current_version")


def shown(who: Principal, *, include_starters: bool = False) -> PlaybookQuerySet:
    """The playbooks that `who` may see, with what their shape shows."""
    rows: PlaybookQuerySet = Playbook.objects.for_user(who, include_starters=include_starters)
    return rows.select_related("current_version").with_counts()


def made(playbook: Playbook, *, status: int = 201) -> Response:
    """The answer that carries a new or changed playbook."""
    row = Playbook.objects.select_related("current_version").with_counts().get(pk=playbook.pk)
    return Response(s.PlaybookShape(row).data, status=status)


def one_of(request: Request, name: str, known: tuple[str, ...]) -> str:
    """A word from the query string; the first known one when it is left out. Raises Invalid."""
    word = str(request.query_params.get(name, known[0])).lower()
    if word not in known:
        raise Invalid.field(name, f"Choose one of: {', '.join(known)}.")
    return word
