"""Who taught a playbook, at the REST door, and taking back what one of them taught."""

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.idempotency import idempotent
from accounts.rest import Door
from accounts.scopes import Scope
from evolution.sources import list_sources, rollback_source
from playbooks.models import Playbook


class SourceShape(serializers.Serializer[Any]):
    """`name` is what /sources/rollback takes."""

    name = serializers.CharField()
    label = serializers.CharField(help_text="The key's name, or the person's e-mail.")  # type: ignore[assignment]  # DRF takes it out of the class
    outcome_count = serializers.IntegerField()
    last_at = serializers.DateTimeField()


class SourcesShape(serializers.Serializer[Any]):
    results = SourceShape(many=True)


class RollbackSourceIn(serializers.Serializer[Any]):
    source = serializers.CharField(max_length=60, help_text="key:<id>, user:<id>, outcome:<id>.")  # type: ignore[assignment]  # DRF takes it out of the class
    include_mixed = serializers.BooleanField(
        default=False, help_text="Also what other sources taught as well."
    )
    dry_run = serializers.BooleanField(default=False, help_text="Only say what would happen.")


class WithdrawalShape(serializers.Serializer[Any]):
    """Bullet ids; `kept` were taught by others as well."""

    version = serializers.IntegerField(
        source="version.number", default=None, allow_null=True, read_only=True
    )
    retired = serializers.ListField(child=serializers.CharField())
    changed = serializers.ListField(child=serializers.CharField())
    kept = serializers.ListField(child=serializers.CharField())
    votes = serializers.IntegerField(help_text="Votes taken back.")


class SourcesDoor(Door):
    """GET /playbooks/{id}/sources."""

    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(operation_id="list_sources", responses=SourcesShape)
    def get(self, request: Request, pk: UUID) -> Response:
        """The keys and people whose outcomes this playbook learnt from, the latest first."""
        playbook = Playbook.objects.for_user(self.who).fetch(pk)
        return Response(SourcesShape({"results": list_sources(playbook=playbook)}).data)


class RollbackSourceDoor(Door):
    """POST /playbooks/{id}/sources/rollback."""

    scopes: ClassVar = {"POST": Scope.ACCOUNT}

    @extend_schema(
        operation_id="rollback_source", request=RollbackSourceIn, responses=WithdrawalShape
    )
    @idempotent()
    def post(self, request: Request, pk: UUID) -> Response:
        """Take back what one source taught, in a new version; people's own edits stay."""
        playbook = Playbook.objects.for_user(self.who).fetch(pk)
        sent = self.sent(RollbackSourceIn)
        made = rollback_source(playbook=playbook, by=self.who, **sent)
        return Response(WithdrawalShape(made).data)
