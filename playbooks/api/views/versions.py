"""REST views of versions: list, read, diff, roll back, undo."""

from typing import ClassVar
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.rest.idempotency import idempotent
from core.security.scopes import Scope
from playbooks.api import serializers as s
from playbooks.api.views.base import BasePlaybookView
from playbooks.models import Version
from playbooks.services.loading import version_of
from playbooks.services.reading import diff_versions
from playbooks.services.rollback import rollback_playbook
from playbooks.services.undo import undo_version


class VersionListView(BasePlaybookView):
    """GET /playbooks/{id}/versions."""

    ordering = ("-number",)

    @extend_schema(operation_id="list_versions", responses=s.VersionSerializer(many=True))
    def get(self, request: Request, pk: UUID) -> Response:
        """List the versions of a playbook, newest first."""
        rows = Version.objects.filter(playbook=self.playbook(pk)).defer("text")
        return self.paginate(
            rows.select_related("parent").defer("parent__text"), s.VersionSerializer
        )


class VersionDetailView(BasePlaybookView):
    """GET /playbooks/{id}/versions/{number}."""

    @extend_schema(operation_id="get_version", responses=s.VersionDetailSerializer)
    def get(self, request: Request, pk: UUID, number: int) -> Response:
        """Get a version with its text and the operations that created it."""
        version = version_of(self.playbook(pk), number)
        return Response(s.VersionDetailSerializer(version).data)


class VersionDiffView(BasePlaybookView):
    """GET /playbooks/{id}/versions/{number}/diff."""

    @extend_schema(
        operation_id="diff_versions",
        parameters=[OpenApiParameter("against", int, description="Left out: the one before.")],
        responses=s.VersionDiffSerializer,
    )
    def get(self, request: Request, pk: UUID, number: int) -> Response:
        """Compare a version with another one, bullet by bullet."""
        against = self.query_integer("against", default=max(1, number - 1)) or 1
        diff = diff_versions(playbook=self.playbook(pk), number=number, against=against)
        changes = s.VersionDiffSerializer({**vars(diff), "version": number, "against": against})
        return Response(changes.data)


class VersionRollbackView(BasePlaybookView):
    """POST /playbooks/{id}/versions/{number}/rollback."""

    scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="rollback_playbook", request=None, responses={201: s.VersionSerializer}
    )
    @idempotent()
    def post(self, request: Request, pk: UUID, number: int) -> Response:
        """Make an older version current again, as a new version; nothing is deleted."""
        playbook = self.own_playbook(pk)
        version = rollback_playbook(playbook=playbook, by=self.principal, number=number)
        return Response(s.VersionSerializer(version).data, status=201)


class VersionUndoView(BasePlaybookView):
    """POST /playbooks/{id}/versions/{number}/undo."""

    scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(operation_id="undo_version", request=None, responses={201: s.VersionSerializer})
    @idempotent()
    def post(self, request: Request, pk: UUID, number: int) -> Response:
        """Undo what one version changed, as a new version; later changes stay.

        409 when one of its bullets has changed since, or when it only counted votes.
        """
        playbook = self.own_playbook(pk)
        version = undo_version(playbook=playbook, by=self.principal, number=number)
        return Response(s.VersionSerializer(version).data, status=201)
