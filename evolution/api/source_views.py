"""REST views of the sources of a playbook: list them, roll back one."""

from typing import ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.rest.idempotency import idempotent
from core.rest.views import BaseAPIView
from core.security.scopes import Scope
from evolution.api.serializers import (
    SourceListSerializer,
    SourceRollbackResultSerializer,
    SourceRollbackSerializer,
)
from evolution.evidence.sources import list_sources, rollback_source
from playbooks.models import Playbook


class SourceListView(BaseAPIView):
    """GET /playbooks/{id}/sources."""

    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(operation_id="list_sources", responses=SourceListSerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """List the keys, apps and people that this playbook learned from, latest first."""
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        return Response(SourceListSerializer({"results": list_sources(playbook=playbook)}).data)


class RollbackSourceView(BaseAPIView):
    """POST /playbooks/{id}/sources/rollback."""

    scopes: ClassVar = {"POST": Scope.ACCOUNT}

    @extend_schema(
        operation_id="rollback_source",
        request=SourceRollbackSerializer,
        responses=SourceRollbackResultSerializer,
    )
    @idempotent()
    def post(self, request: Request, pk: UUID) -> Response:
        """Revert what one source taught or edited, in a new version; your own edits stay."""
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        sent = self.validated_body(SourceRollbackSerializer)
        made = rollback_source(playbook=playbook, by=self.principal, **sent)
        return Response(SourceRollbackResultSerializer(made).data)
