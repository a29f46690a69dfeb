"""What is inside a playbook: its versions, sections and bullets, and edits of them."""

from typing import ClassVar
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.idempotency import idempotent
from accounts.rest import Door
from accounts.scopes import Scope
from playbooks import services
from playbooks import shapes as s
from playbooks.api.playbooks import one_of, readable
from playbooks.models import Bullet, Playbook, Section, Version
from playbooks.operations import Operation
from playbooks.undoing import undo_version

MOST_VOTES = 1_000
BULLET_STATUSES = ("active", "retired", "merged", "all")


class Inside(Door):
    """A route under one playbook."""

    scopes: ClassVar = {"GET": Scope.READ}

    def playbook(self, pk: UUID) -> Playbook:
        """For reading: the caller's own, or a starter."""
        return readable(self.who).fetch(pk)

    def own_playbook(self, pk: UUID) -> Playbook:
        """For changing: the caller's own."""
        return Playbook.objects.for_user(self.who).select_related("current_version").fetch(pk)


class VersionsDoor(Inside):
    """GET /playbooks/{id}/versions."""

    ordering = ("-number",)

    @extend_schema(operation_id="list_versions", responses=s.VersionShape(many=True))
    def get(self, request: Request, pk: UUID) -> Response:
        """The versions of a playbook, newest first."""
        rows = Version.objects.filter(playbook=self.playbook(pk)).defer("text")
        return self.page(rows.select_related("parent").defer("parent__text"), s.VersionShape)


class VersionDoor(Inside):
    """GET /playbooks/{id}/versions/{number}."""

    @extend_schema(operation_id="read_version", responses=s.VersionDetailShape)
    def get(self, request: Request, pk: UUID, number: int) -> Response:
        """One version with its text, and the operations that made it."""
        version = services.version_of(self.playbook(pk), number)
        return Response(s.VersionDetailShape(version).data)


class DiffDoor(Inside):
    """GET /playbooks/{id}/versions/{number}/diff."""

    @extend_schema(
        operation_id="diff_versions",
        parameters=[OpenApiParameter("against", int, description="Left out: the one before.")],
        responses=s.DiffShape,
    )
    def get(self, request: Request, pk: UUID, number: int) -> Response:
        """What a version changed since another one, bullet by bullet."""
        against = self.number("against", default=max(1, number - 1)) or 1
        diff = services.diff_versions(playbook=self.playbook(pk), number=number, against=against)
        changes = s.DiffShape({**vars(diff), "version": number, "against": against})
        return Response(changes.data)


class RollbackDoor(Inside):
    """POST /playbooks/{id}/versions/{number}/rollback."""

    scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(operation_id="rollback_playbook", request=None, responses={201: s.VersionShape})
    @idempotent()
    def post(self, request: Request, pk: UUID, number: int) -> Response:
        """Make an older version current again, as a new version; nothing is deleted."""
        playbook = self.own_playbook(pk)
        version = services.rollback_playbook(playbook=playbook, by=self.who, number=number)
        return Response(s.VersionShape(version).data, status=201)


class UndoDoor(Inside):
    """POST /playbooks/{id}/versions/{number}/undo."""

    scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(operation_id="undo_version", request=None, responses={201: s.VersionShape})
    @idempotent()
    def post(self, request: Request, pk: UUID, number: int) -> Response:
        """Take back what one version changed, as a new version; what came after it stays.

        409 when one of its bullets was changed again since, or when it only counted votes.
        """
        playbook = self.own_playbook(pk)
        version = undo_version(playbook=playbook, by=self.who, number=number)
        return Response(s.VersionShape(version).data, status=201)


class SectionsDoor(Inside):
    """GET /playbooks/{id}/sections."""

    ordering = ("position", "id")

    @extend_schema(operation_id="list_sections", responses=s.SectionShape(many=True))
    def get(self, request: Request, pk: UUID) -> Response:
        """The sections of a playbook, in their order."""
        return self.page(Section.objects.filter(playbook=self.playbook(pk)), s.SectionShape)


class BulletsDoor(Inside):
    """GET /playbooks/{id}/bullets."""

    ordering = ("created_at", "id")

    @extend_schema(
        operation_id="list_bullets",
        parameters=[
            OpenApiParameter("status", str, enum=BULLET_STATUSES, default="active"),
            OpenApiParameter("section", str, description="Only this one: its key."),
        ],
        responses=s.BulletShape(many=True),
    )
    def get(self, request: Request, pk: UUID) -> Response:
        """The bullets of a playbook as they are now, oldest first, with their counters."""
        status = one_of(request, "status", BULLET_STATUSES)
        rows = Bullet.objects.filter(playbook=self.playbook(pk))
        if status != "all":
            rows = rows.filter(status=status)
        if section := request.query_params.get("section", "").replace("\x00", ""):
            rows = rows.filter(section__key=section)
        return self.page(rows.select_related("section", "merged_into"), s.BulletShape)


class BulletHistoryDoor(Inside):
    """GET /playbooks/{id}/bullets/{bullet}/history."""

    @extend_schema(operation_id="get_bullet_history", responses=s.BulletHistoryShape)
    def get(self, request: Request, pk: UUID, bullet: str) -> Response:
        """Where a bullet comes from, what changed it, and its newest 1,000 votes."""
        history = services.bullet_history(
            playbook=self.playbook(pk), bullet_id=bullet, most_votes=MOST_VOTES
        )
        return Response(s.BulletHistoryShape(history).data)


class DeltasDoor(Inside):
    """POST /playbooks/{id}/deltas."""

    scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="edit_playbook",
        request=s.DeltasIn,
        responses={200: s.PublicationShape, 201: s.PublicationShape},
    )
    @idempotent()
    def post(self, request: Request, pk: UUID) -> Response:
        """Edit bullets. 201 with a new version; 200 when no operation changed anything."""
        sent = self.sent(s.DeltasIn)
        publication = services.edit_playbook(
            playbook=self.own_playbook(pk),
            by=self.who,
            operations=[Operation(**{**op, "ids": tuple(op["ids"])}) for op in sent["operations"]],
            expected_version=sent["expected_version"],
        )
        status = 200 if publication.version is None else 201
        return Response(s.PublicationShape(publication).data, status=status)
