"""REST views of playbooks, bullets, versions, reviews and trials."""

from typing import Any, ClassVar
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.errors import Invalid
from core.rest.idempotency import idempotent
from core.rest.views import POSITIVE, BaseAPIView
from core.security.scopes import Scope
from core.sql.querysets import CompiledLookup
from playbooks.api import serializers as s
from playbooks.document.formats import FORMATS
from playbooks.document.operations import Operation
from playbooks.document.sections import Section as NewSection
from playbooks.models import Bullet, Playbook, ReviewItem, Section, Trial, Version
from playbooks.review.decisions import approve_review_item, decline_review_item
from playbooks.services import creation
from playbooks.services.editing import edit_playbook
from playbooks.services.history import bullet_history
from playbooks.services.loading import version_of
from playbooks.services.reading import diff_versions, export_file, read_playbook
from playbooks.services.rollback import rollback_playbook, undo_version
from playbooks.services.seals import export_seals
from playbooks.services.settings import archive_playbook, restore_playbook, update_playbook
from playbooks.services.trials import start_trial, stop_trial


class BasePlaybookView(BaseAPIView):
    """A route under one playbook."""

    scopes: ClassVar = {"GET": Scope.READ}

    def playbook(self, pk: UUID) -> Playbook:
        """For reading: the caller's own, or a starter."""
        rows = Playbook.objects.for_user(self.principal, include_starters=True)
        return rows.select_related("current_version").fetch(pk)

    def own_playbook(self, pk: UUID) -> Playbook:
        """For changing: the caller's own."""
        return Playbook.objects.for_user(self.principal).select_related("current_version").fetch(pk)


def choice_param(request: Request, name: str, known: tuple[str, ...]) -> str:
    """A query parameter that is one of `known`, by default the first. Raises Invalid."""
    word = str(request.query_params.get(name, known[0])).lower()
    if word not in known:
        raise Invalid.field(name, f"Choose one of: {', '.join(known)}.")
    return word


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
            NewSection(**{**section, "aliases": tuple(section["aliases"])})
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
            OpenApiParameter("version", POSITIVE, description="An older version."),
            OpenApiParameter(
                "max_tokens",
                POSITIVE,
                description="Only the most useful bullets that fit (estimate).",
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
            found = creation.preview_import(content=sent["content"], by=self.principal)
            return Response(s.ImportPreviewSerializer(found).data)
        return playbook_response(creation.import_playbook(by=self.principal, **sent))


class PlaybookExportView(BasePlaybookView):
    """GET /playbooks/{id}/export."""

    @extend_schema(
        operation_id="export_playbook",
        parameters=[
            OpenApiParameter("version", POSITIVE, description="An older version."),
            OpenApiParameter(
                "format",
                str,
                enum=list(FORMATS),
                default="ace",
                description="Other than `ace`: the file itself, which /playbooks/import takes as"
                " its `content`.",
            ),
        ],
        responses={
            (200, "application/json"): s.PlaybookExportSerializer,
            (200, "text/markdown"): str,
            (200, "application/zip"): OpenApiTypes.BINARY,
        },
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
        parameters=[OpenApiParameter("against", POSITIVE, description="Left out: the one before.")],
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


class SealView(BasePlaybookView):
    """GET /playbooks/{id}/seals."""

    @extend_schema(operation_id="export_seals", responses={(200, "text/plain"): str})
    def get(self, request: Request, pk: UUID) -> HttpResponse:
        """Export each version's seal and the facts that it was made of, as JSON Lines."""
        lines = export_seals(playbook=self.own_playbook(pk))
        return HttpResponse(lines, content_type="text/plain; charset=utf-8")


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


STATES = (*ReviewItem.State.values, "all")


class ReviewItemListView(BasePlaybookView):
    """GET /playbooks/{id}/reviews."""

    @extend_schema(
        operation_id="list_review_items",
        parameters=[OpenApiParameter("state", str, enum=STATES, default="pending")],
        responses=s.ReviewItemSerializer(many=True),
    )
    def get(self, request: Request, pk: UUID) -> Response:
        """List the texts of agents and models that need review, newest first."""
        state = choice_param(request, "state", STATES)
        rows = ReviewItem.objects.for_user(self.principal).filter(playbook=self.own_playbook(pk))
        if state != "all":
            rows = rows.filter(state=state)
        return self.paginate(rows.select_related("delta", "version"), s.ReviewItemSerializer)


class BaseReviewItemView(BasePlaybookView):
    """One review item. Only people decide: no API key can approve what agents contributed."""

    scopes: ClassVar = {"POST": Scope.ACCOUNT}

    def review_item(self, pk: UUID, review: UUID) -> ReviewItem:
        rows = ReviewItem.objects.for_user(self.principal).filter(playbook=self.own_playbook(pk))
        return rows.select_related("delta", "playbook", "version").fetch(review)


class ReviewItemApproveView(BaseReviewItemView):
    """POST /playbooks/{id}/reviews/{review}/approve."""

    @extend_schema(
        operation_id="approve_review_item",
        request=s.ReviewItemApproveSerializer,
        responses={201: s.ReviewItemSerializer},
    )
    @idempotent()
    def post(self, request: Request, pk: UUID, review: UUID) -> Response:
        """Approve an item, optionally with your own text: a new version is published."""
        sent = self.validated_body(s.ReviewItemApproveSerializer)
        made = approve_review_item(item=self.review_item(pk, review), by=self.principal, **sent)
        return Response(s.ReviewItemSerializer(made.item).data, status=201)


class ReviewItemDeclineView(BaseReviewItemView):
    """POST /playbooks/{id}/reviews/{review}/decline."""

    @extend_schema(
        operation_id="decline_review_item", request=None, responses=s.ReviewItemSerializer
    )
    def post(self, request: Request, pk: UUID, review: UUID) -> Response:
        """Decline an item; the same text is rejected from now on."""
        made = decline_review_item(item=self.review_item(pk, review), by=self.principal)
        return Response(s.ReviewItemSerializer(made).data)


class TrialListView(BasePlaybookView):
    """GET, POST /playbooks/{id}/trials."""

    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.WRITE}

    @extend_schema(operation_id="list_trials", responses=s.TrialSerializer(many=True))
    def get(self, request: Request, pk: UUID) -> Response:
        """List the trials of a playbook, newest first."""
        rows = Trial.objects.for_user(self.principal).filter(playbook=self.own_playbook(pk))
        return self.paginate(rows.with_versions(), s.TrialSerializer)

    @extend_schema(
        operation_id="start_trial",
        request=s.TrialStartSerializer,
        responses={201: s.TrialSerializer},
    )
    @idempotent()
    def post(self, request: Request, pk: UUID) -> Response:
        """Try a bullet, or the whole playbook: some readings do without. Evolutions wait."""
        sent = self.validated_body(s.TrialStartSerializer)
        trial = start_trial(playbook=self.own_playbook(pk), by=self.principal, **sent)
        return Response(s.TrialSerializer(trial).data, status=201)


class TrialDetailView(BaseAPIView):
    """GET /trials/{id}."""

    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(operation_id="get_trial", responses=s.TrialSerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """Get a trial: its arms, and how strongly they say that the newest is worse or better."""
        rows = Trial.objects.for_user(self.principal).with_versions()
        return Response(s.TrialSerializer(rows.fetch(pk)).data)


class TrialEndView(BaseAPIView):
    """POST /trials/{id}/end."""

    scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(
        operation_id="end_trial", request=s.TrialEndSerializer, responses=s.TrialSerializer
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """End a trial: everybody reads the newest version, or the stable one as a new version."""
        sent = self.validated_body(s.TrialEndSerializer)
        trial = Trial.objects.for_user(self.principal).with_versions().fetch(pk)
        return Response(s.TrialSerializer(stop_trial(trial=trial, by=self.principal, **sent)).data)
