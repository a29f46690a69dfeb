"""REST views of whole playbooks: list, read, change, clone, import, export."""

from typing import Any, ClassVar
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.rest.idempotency import idempotent
from core.rest.views import BaseAPIView
from core.security.scopes import Scope
from core.sql.querysets import CompiledLookup
from playbooks.api import serializers as s
from playbooks.api.views.base import BasePlaybookView, choice_param
from playbooks.document.formats import FORMATS
from playbooks.document.sections import Section
from playbooks.models import Playbook
from playbooks.services import creation
from playbooks.services.loading import version_of
from playbooks.services.reading import export_file, read_playbook
from playbooks.services.settings import archive_playbook, restore_playbook, update_playbook

READABLE_PLAYBOOK = CompiledLookup(
    lambda by: (
        Playbook.objects.for_user(by, include_starters=True)
        .select_related("current_version")
        .with_counts()
        .with_activity()
    )
)
STATUSES = (*Playbook.Status.values, "all")


class PlaybookListView(BaseAPIView):
    """GET, POST /playbooks."""

    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.WRITE}

    @extend_schema(
        operation_id="list_playbooks",
        parameters=[
            OpenApiParameter("status", str, enum=STATUSES, default="active"),
            OpenApiParameter("include_starters", bool, default=False),
            OpenApiParameter("query", str, description="Words in the name or the description."),
        ],
        responses=s.PlaybookSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """List your playbooks, newest first, on request with the starters."""
        starters = choice_param(request, "include_starters", ("false", "true")) == "true"
        status = choice_param(request, "status", STATUSES)
        rows = Playbook.objects.for_user(self.principal, include_starters=starters)
        rows = rows.for_list()
        if status != "all":
            rows = rows.filter(status=status)
        rows = rows.matching(request.query_params.get("query", ""))
        return self.paginate(rows, s.PlaybookSerializer)

    @extend_schema(
        operation_id="create_playbook",
        request=s.PlaybookCreateSerializer,
        responses={201: s.PlaybookSerializer},
    )
    @idempotent()
    def post(self, request: Request) -> Response:
        """Create a playbook, empty or with first advice in any of the import formats."""
        sent = self.validated_body(s.PlaybookCreateSerializer)
        sent["sections"] = [
            Section(**{**section, "aliases": tuple(section["aliases"])})
            for section in sent["sections"]
        ]
        return playbook_response(creation.create_playbook(by=self.principal, **sent))


class PlaybookDetailView(BasePlaybookView):
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
            OpenApiParameter(
                "task_key", str, description="Readings with the same key get one arm of a trial."
            ),
        ],
        responses=s.PlaybookDetailSerializer,
    )
    def get(self, request: Request, pk: UUID) -> Response:
        """Get a playbook with its advice, as agents read it. Reading changes nothing."""
        playbook = READABLE_PLAYBOOK.fetch(self.principal, pk)
        reading = read_playbook(
            playbook=playbook,
            by=self.principal,
            section=request.query_params.get("section", ""),
            version=self.query_integer("version"),
            max_tokens=self.query_integer("max_tokens"),
            task_key=request.query_params.get("task_key", ""),
        )
        body = s.PlaybookSerializer(playbook).data
        read = {
            "current_version": body["version"],
            "version": reading.version,
            "serving_id": reading.serving_id,
            "content": reading.content,
            "left_out": s.OmittedBulletsSerializer(reading.left_out, many=True).data,
        }
        return Response({**body, **read})

    @extend_schema(
        operation_id="replace_playbook",
        request=s.PlaybookUpdateSerializer,
        responses=s.PlaybookSerializer,
    )
    def put(self, request: Request, pk: UUID) -> Response:
        """Replace name, description and settings; a missing field gets its default."""
        return self._update(pk, self.validated_body(s.PlaybookUpdateSerializer))

    @extend_schema(
        operation_id="update_playbook",
        request=s.PlaybookUpdateSerializer,
        responses=s.PlaybookSerializer,
    )
    def patch(self, request: Request, pk: UUID) -> Response:
        """Change name, description or settings; a missing field stays as it is."""
        return self._update(pk, self.validated_body(s.PlaybookUpdateSerializer, partial=True))

    @extend_schema(operation_id="archive_playbook", responses={204: None})
    def delete(self, request: Request, pk: UUID) -> Response:
        """Archive the playbook. All data is kept; PATCH `status` restores it."""
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        archive_playbook(playbook=playbook, by=self.principal)
        return Response(status=204)

    @transaction.atomic
    def _update(self, pk: UUID, sent: dict[str, Any]) -> Response:
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        status = sent.pop("status", playbook.status)
        playbook = update_playbook(playbook=playbook, by=self.principal, **sent)
        if status != playbook.status:
            archived = status == Playbook.Status.ARCHIVED
            change = archive_playbook if archived else restore_playbook
            change(playbook=playbook, by=self.principal)
        return playbook_response(playbook, status=200)


class PlaybookCloneView(BaseAPIView):
    """POST /playbooks/{id}/clone."""

    scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="clone_playbook",
        request=s.PlaybookCloneSerializer,
        responses={201: s.PlaybookSerializer},
    )
    @idempotent()
    def post(self, request: Request, pk: UUID) -> Response:
        """Copy a starter or one of your playbooks into a new playbook."""
        playbook = Playbook.objects.for_user(self.principal, include_starters=True).fetch(pk)
        sent = self.validated_body(s.PlaybookCloneSerializer)
        return playbook_response(
            creation.clone_playbook(playbook=playbook, by=self.principal, **sent)
        )


class PlaybookImportView(BaseAPIView):
    """POST /playbooks/import."""

    scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="import_playbook",
        request=s.PlaybookImportSerializer,
        responses={200: s.ImportPreviewSerializer, 201: s.PlaybookSerializer},
    )
    @idempotent()
    def post(self, request: Request) -> Response:
        """Create a playbook from ACE text, JSON, Markdown, a rules file or a cheatsheet."""
        sent = self.validated_body(s.PlaybookImportSerializer)
        sent.pop("version", None)
        if sent.pop("dry_run"):
            found = creation.preview_import(content=sent["content"])
            return Response(s.ImportPreviewSerializer(found).data)
        return playbook_response(creation.import_playbook(by=self.principal, **sent))


class PlaybookExportView(BasePlaybookView):
    """GET /playbooks/{id}/export."""

    @extend_schema(
        operation_id="export_playbook",
        parameters=[
            OpenApiParameter("version", int, description="An older version."),
            OpenApiParameter(
                "format",
                str,
                enum=list(FORMATS),
                default="ace",
                description="Other than `ace`: the file itself, which /playbooks/import takes as"
                " its `content`.",
            ),
        ],
        responses=s.PlaybookExportSerializer,
    )
    def get(self, request: Request, pk: UUID) -> Response | HttpResponse:
        """Export a playbook as ACE text, in a form that /playbooks/import accepts, or as a file."""
        playbook = self.playbook(pk)
        number = self.query_integer("version")
        wanted = choice_param(request, "format", tuple(FORMATS))
        if wanted != "ace":
            file = export_file(playbook=playbook, format_name=wanted, version=number)
            return HttpResponse(file.body, content_type=file.content_type)
        row = version_of(playbook, number)
        body = {"name": playbook.name, "description": playbook.description}
        return Response({**body, "version": row.number, "content": row.text})


def playbook_response(playbook: Playbook, *, status: int = 201) -> Response:
    """The response with a new or changed playbook."""
    row = Playbook.objects.for_list().get(pk=playbook.pk)
    return Response(s.PlaybookSerializer(row).data, status=status)
