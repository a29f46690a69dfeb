"""The review queue: texts that a machine proposed and that wait for a person."""

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.idempotency import idempotent
from accounts.scopes import Scope
from playbooks.api.contents import Inside
from playbooks.api.playbooks import one_of
from playbooks.models import HeldText
from playbooks.reviewing import approve_held_text, decline_held_text
from playbooks.shapes import DeltaShape

STATES = (*HeldText.State.values, "all")


class HeldTextShape(serializers.Serializer[Any]):
    """A held operation: `delta.after` is what was proposed, `delta.reason_code` why it waits."""

    id = serializers.UUIDField()
    state = serializers.ChoiceField(choices=HeldText.State.choices)
    delta = DeltaShape()
    version = serializers.IntegerField(
        source="version.number", default=None, allow_null=True, help_text="Of its approval."
    )
    created_at = serializers.DateTimeField()
    decided_at = serializers.DateTimeField(allow_null=True)


class ApproveIn(serializers.Serializer[Any]):
    content = serializers.CharField(
        max_length=20_000, allow_blank=True, default="", help_text="Your wording instead."
    )


class HeldTextsDoor(Inside):
    """GET /playbooks/{id}/held-texts."""

    @extend_schema(
        operation_id="list_held_texts",
        parameters=[OpenApiParameter("state", str, enum=STATES, default="pending")],
        responses=HeldTextShape(many=True),
    )
    def get(self, request: Request, pk: UUID) -> Response:
        """What waits for a person before agents read it, newest first."""
        state = one_of(request, "state", STATES)
        rows = HeldText.objects.for_user(self.who).filter(playbook=self.own_playbook(pk))
        if state != "all":
            rows = rows.filter(state=state)
        return self.page(rows.select_related("delta", "version"), HeldTextShape)


class HeldTextDoor(Inside):
    """One held text, for a person to decide: no API key may approve what agents taught."""

    scopes: ClassVar = {"POST": Scope.ACCOUNT}

    def held(self, pk: UUID, held: UUID) -> HeldText:
        rows = HeldText.objects.for_user(self.who).filter(playbook=self.own_playbook(pk))
        return rows.select_related("delta", "playbook", "version").fetch(held)


class ApproveDoor(HeldTextDoor):
    """POST /playbooks/{id}/held-texts/{held}/approve."""

    @extend_schema(
        operation_id="approve_held_text", request=ApproveIn, responses={201: HeldTextShape}
    )
    @idempotent()
    def post(self, request: Request, pk: UUID, held: UUID) -> Response:
        """Let agents read it from a new version on, in your wording if you send one."""
        sent = self.sent(ApproveIn)
        made = approve_held_text(held=self.held(pk, held), by=self.who, **sent)
        return Response(HeldTextShape(made.held).data, status=201)


class DeclineDoor(HeldTextDoor):
    """POST /playbooks/{id}/held-texts/{held}/decline."""

    @extend_schema(operation_id="decline_held_text", request=None, responses=HeldTextShape)
    def post(self, request: Request, pk: UUID, held: UUID) -> Response:
        """Keep it out for good: the same text is rejected from now on."""
        made = decline_held_text(held=self.held(pk, held), by=self.who)
        return Response(HeldTextShape(made).data)
