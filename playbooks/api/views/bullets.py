"""REST views of sections and bullets, and edits of bullets."""

from typing import ClassVar
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.rest.idempotency import idempotent
from core.security.scopes import Scope
from playbooks.api import serializers as s
from playbooks.api.views.base import BasePlaybookView, choice_param
from playbooks.document.operations import Operation
from playbooks.models import Bullet, Section
from playbooks.services.editing import edit_playbook
from playbooks.services.history import bullet_history

MOST_VOTES = 1_000
BULLET_STATUSES = ("active", "retired", "merged", "all")


class SectionListView(BasePlaybookView):
    """GET /playbooks/{id}/sections."""

    ordering = ("position", "id")

    @extend_schema(operation_id="list_sections", responses=s.SectionSerializer(many=True))
    def get(self, request: Request, pk: UUID) -> Response:
        """List the sections of a playbook, in order."""
        return self.paginate(
            Section.objects.filter(playbook=self.playbook(pk)), s.SectionSerializer
        )


class BulletListView(BasePlaybookView):
    """GET /playbooks/{id}/bullets."""

    ordering = ("created_at", "id")

    @extend_schema(
        operation_id="list_bullets",
        parameters=[
            OpenApiParameter("status", str, enum=BULLET_STATUSES, default="active"),
            OpenApiParameter("section", str, description="Only this one: its key."),
        ],
        responses=s.BulletSerializer(many=True),
    )
    def get(self, request: Request, pk: UUID) -> Response:
        """List the current bullets of a playbook with their counters, oldest first."""
        status = choice_param(request, "status", BULLET_STATUSES)
        rows = Bullet.objects.filter(playbook=self.playbook(pk))
        if status != "all":
            rows = rows.filter(status=status)
        if section := request.query_params.get("section", "").replace("\x00", ""):
            rows = rows.filter(section__key=section)
        return self.paginate(rows.select_related("section", "merged_into"), s.BulletSerializer)


class BulletHistoryView(BasePlaybookView):
    """GET /playbooks/{id}/bullets/{bullet}/history."""

    @extend_schema(operation_id="get_bullet_history", responses=s.BulletHistorySerializer)
    def get(self, request: Request, pk: UUID, bullet: str) -> Response:
        """Get the origin of a bullet, its changes and its newest 1,000 votes."""
        history = bullet_history(
            playbook=self.playbook(pk), bullet_id=bullet, most_votes=MOST_VOTES
        )
        return Response(s.BulletHistorySerializer(history).data)


class PlaybookEditView(BasePlaybookView):
    """POST /playbooks/{id}/deltas."""

    scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="edit_playbook",
        request=s.PlaybookEditSerializer,
        responses={200: s.PlaybookEditResultSerializer, 201: s.PlaybookEditResultSerializer},
    )
    @idempotent()
    def post(self, request: Request, pk: UUID) -> Response:
        """Edit bullets: 201 with a new version, 200 if no operation changed anything."""
        sent = self.validated_body(s.PlaybookEditSerializer)
        publication = edit_playbook(
            playbook=self.own_playbook(pk),
            by=self.principal,
            operations=[Operation(**{**op, "ids": tuple(op["ids"])}) for op in sent["operations"]],
            expected_version=sent["expected_version"],
        )
        status = 200 if publication.version is None else 201
        return Response(s.PlaybookEditResultSerializer(publication).data, status=status)
