"""REST views of playbooks, bullets, versions, reviews and trials."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.response import Response

from core.rest.views import POSITIVE, BaseViewSet, operation, represent
from core.security.scopes import Scope
from core.sql.querysets import CompiledLookup
from playbooks.api import serializers as s
from playbooks.document.formats import FORMATS
from playbooks.document.operations import Operation
from playbooks.document.sections import Section as NewSection
from playbooks.models import Bullet, Playbook, ReviewItem, Section, Trial, Version
from playbooks.models.trials import TrialQuerySet
from playbooks.review.decisions import approve_review_item, decline_review_item
from playbooks.services import creation
from playbooks.services.editing import prepare_edit
from playbooks.services.history import bullet_history
from playbooks.services.loading import version_of
from playbooks.services.reading import diff_versions, export_file, read_playbook
from playbooks.services.rollback import rollback_playbook, undo_version
from playbooks.services.seals import export_seals
from playbooks.services.settings import archive_playbook, restore_playbook, update_playbook
from playbooks.services.trials import start_trial, stop_trial

READABLE_PLAYBOOK = CompiledLookup(
    lambda by: (
        Playbook.objects.for_user(by, include_starters=True)
        .select_related("current_version")
        .with_counts()
        .with_activity()
    )
)
STATUSES = (*Playbook.Status.values, "all")
BULLET_STATUSES = ("active", "retired", "merged", "all")
REVIEW_STATES = (*ReviewItem.State.values, "all")
VERSION = OpenApiParameter("version", POSITIVE, description="An older version.")


class BasePlaybookViewSet(BaseViewSet):
    """Operations on one playbook."""

    def playbook(self, pk: UUID) -> Playbook:
        """For reading: the caller's own, or a starter."""
        rows = Playbook.objects.for_user(self.principal, include_starters=True)
        return rows.select_related("current_version").fetch(pk)

    def own_playbook(self, pk: UUID) -> Playbook:
        """For changing: the caller's own."""
        return Playbook.objects.for_user(self.principal).select_related("current_version").fetch(pk)


class PlaybookViewSet(BasePlaybookViewSet):
    @operation(
        Scope.READ,
        s.PlaybookSerializer(many=True),
        parameters=[
            OpenApiParameter("status", str, enum=STATUSES, default="active"),
            OpenApiParameter("include_starters", bool, default=False),
            OpenApiParameter("query", str, description="Words in the name or the description."),
        ],
    )
    def list_playbooks(self) -> Response:
        """List your playbooks, and starters on request, newest first."""
        starters = self.query_choice("include_starters", ("false", "true")) == "true"
        status = self.query_choice("status", STATUSES)
        rows = Playbook.objects.for_user(self.principal, include_starters=starters)
        rows = rows.for_list()
        if status != "all":
            rows = rows.filter(status=status)
        rows = rows.matching(self.request.query_params.get("query", ""))
        return self.paginate(rows, s.PlaybookSerializer)

    @operation(
        Scope.WRITE, {201: s.PlaybookSerializer}, takes=s.PlaybookCreateSerializer, prepared=True
    )
    def create_playbook(self, sent: dict[str, Any]) -> Callable[[], Any]:
        """Create a playbook, empty or with first advice in any of the import formats."""
        sent["sections"] = [
            NewSection(**{**section, "aliases": tuple(section["aliases"])})
            for section in sent["sections"]
        ]
        create = creation.prepare_playbook(by=self.principal, **sent)
        return lambda: as_listed(create())

    @operation(
        Scope.WRITE,
        {201: s.PlaybookSerializer, 200: s.ImportPreviewSerializer},
        takes=s.PlaybookImportSerializer,
        prepared=True,
    )
    def import_playbook(self, sent: dict[str, Any]) -> Callable[[], Any]:
        """Create a playbook from ACE text, JSON, Markdown, a rules file or a cheatsheet."""
        sent.pop("version", None)
        if sent.pop("dry_run"):
            found = creation.preview_import(content=sent["content"], by=self.principal)
            return lambda: Response(represent(found, s.ImportPreviewSerializer))
        create = creation.prepare_import(by=self.principal, **sent)
        return lambda: as_listed(create())

    @operation(
        Scope.READ,
        s.PlaybookDetailSerializer,
        parameters=[
            OpenApiParameter("section", str, description="Only this one: its key or title."),
            VERSION,
            OpenApiParameter(
                "max_tokens",
                POSITIVE,
                description="Only the most useful bullets that fit (estimate).",
            ),
            OpenApiParameter(
                "task_key", str, description="Reads with the same key get the same arm of a trial."
            ),
        ],
    )
    def get_playbook(self, pk: UUID) -> Response:
        """Get a playbook with its advice, as agents read it. Reading changes nothing."""
        playbook = READABLE_PLAYBOOK.fetch(self.principal, pk)
        reading = read_playbook(
            playbook=playbook,
            by=self.principal,
            section=self.request.query_params.get("section", ""),
            version=self.query_integer("version"),
            max_tokens=self.query_integer("max_tokens"),
            task_key=self.request.query_params.get("task_key", ""),
        )
        body = represent(playbook, s.PlaybookSerializer)
        read = {
            "current_version": body["version"],
            "version": reading.version,
            "serving_id": reading.serving_id,
            "content": reading.content,
            "left_out": [represent(p, s.OmittedBulletsSerializer) for p in reading.left_out],
        }
        return Response({**body, **read})

    @operation(Scope.WRITE, s.PlaybookSerializer, takes=s.PlaybookUpdateSerializer)
    def replace_playbook(self, pk: UUID, sent: dict[str, Any]) -> Any:
        """Replace name, description and settings; a missing field gets its default."""
        return self._update(pk, sent)

    @operation(Scope.WRITE, s.PlaybookSerializer, takes=s.PlaybookUpdateSerializer, partial=True)
    def update_playbook(self, pk: UUID, sent: dict[str, Any]) -> Any:
        """Change name, description or settings; a missing field stays as it is."""
        return self._update(pk, sent)

    @operation(Scope.WRITE, {204: None})
    def archive_playbook(self, pk: UUID) -> None:
        """Archive the playbook. All data is kept; PATCH `status` restores it."""
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        archive_playbook(playbook=playbook, by=self.principal)

    @transaction.atomic
    def _update(self, pk: UUID, sent: dict[str, Any]) -> Playbook:
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        status = sent.pop("status", playbook.status)
        playbook = update_playbook(playbook=playbook, by=self.principal, **sent)
        if status != playbook.status:
            archived = status == Playbook.Status.ARCHIVED
            change = archive_playbook if archived else restore_playbook
            change(playbook=playbook, by=self.principal)
        return as_listed(playbook)

    @operation(Scope.WRITE, {201: s.PlaybookSerializer}, takes=s.PlaybookCloneSerializer, once=True)
    def clone_playbook(self, pk: UUID, sent: dict[str, Any]) -> Any:
        """Copy a starter or one of your playbooks into a new playbook."""
        playbook = Playbook.objects.for_user(self.principal, include_starters=True).fetch(pk)
        return as_listed(creation.clone_playbook(playbook=playbook, by=self.principal, **sent))

    @operation(
        Scope.READ,
        {
            (200, "application/json"): s.PlaybookExportSerializer,
            (200, "text/markdown"): str,
            (200, "application/zip"): OpenApiTypes.BINARY,
        },
        parameters=[
            VERSION,
            OpenApiParameter(
                "format",
                str,
                enum=list(FORMATS),
                default="ace",
                description="Other than `ace`: the file itself, which /playbooks/import takes as"
                " its `content`.",
            ),
        ],
    )
    def export_playbook(self, pk: UUID) -> Response | HttpResponse:
        """Export a playbook as ACE text, in a form that /playbooks/import accepts, or as a file."""
        playbook, number = self.playbook(pk), self.query_integer("version")
        wanted = self.query_choice("format", tuple(FORMATS))
        if wanted != "ace":
            file = export_file(playbook=playbook, format_name=wanted, version=number)
            return HttpResponse(file.body, content_type=file.content_type)
        row = version_of(playbook, number)
        body = {"name": playbook.name, "description": playbook.description}
        return Response({**body, "version": row.number, "content": row.text})

    @operation(Scope.READ, s.SectionSerializer(many=True))
    def list_sections(self, pk: UUID) -> Response:
        """List the sections of a playbook, in order."""
        rows = Section.objects.filter(playbook=self.playbook(pk))
        return self.paginate(rows, s.SectionSerializer, ordering=("position", "id"))

    @operation(
        Scope.READ,
        s.BulletSerializer(many=True),
        parameters=[
            OpenApiParameter("status", str, enum=BULLET_STATUSES, default="active"),
            OpenApiParameter("section", str, description="Only this one: its key."),
        ],
    )
    def list_bullets(self, pk: UUID) -> Response:
        """List the current bullets of a playbook with their counters, oldest first."""
        status = self.query_choice("status", BULLET_STATUSES)
        rows = Bullet.objects.filter(playbook=self.playbook(pk))
        if status != "all":
            rows = rows.filter(status=status)
        if section := self.request.query_params.get("section", "").replace("\x00", ""):
            rows = rows.filter(section__key=section)
        rows = rows.select_related("section", "merged_into")
        return self.paginate(rows, s.BulletSerializer, ordering=("created_at", "id"))

    @operation(Scope.READ, s.BulletHistorySerializer)
    def get_bullet_history(self, pk: UUID, bullet: str) -> Any:
        """Get the origin of a bullet, its changes and its newest 1,000 votes."""
        return bullet_history(playbook=self.playbook(pk), bullet_id=bullet)

    @operation(
        Scope.WRITE,
        {201: s.PlaybookEditResultSerializer, 200: s.PlaybookEditResultSerializer},
        takes=s.PlaybookEditSerializer,
        prepared=True,
    )
    def edit_playbook(self, pk: UUID, sent: dict[str, Any]) -> Callable[[], Response]:
        """Edit bullets: 201 with a new version, 200 if no operation changed anything."""
        edit = prepare_edit(
            playbook=self.own_playbook(pk),
            by=self.principal,
            operations=[Operation(**{**op, "ids": tuple(op["ids"])}) for op in sent["operations"]],
            expected_version=sent["expected_version"],
        )

        def write() -> Response:
            publication = edit()
            status = 200 if publication.version is None else 201
            return Response(represent(publication, s.PlaybookEditResultSerializer), status=status)

        return write


def as_listed(playbook: Playbook) -> Playbook:
    """The row with what the serializer of a playbook reads."""
    return Playbook.objects.for_list().get(pk=playbook.pk)


class VersionViewSet(BasePlaybookViewSet):
    @operation(Scope.READ, s.VersionSerializer(many=True))
    def list_versions(self, pk: UUID) -> Response:
        """List the versions of a playbook, newest first."""
        rows = Version.objects.filter(playbook=self.playbook(pk)).defer("text")
        rows = rows.select_related("parent").defer("parent__text")
        return self.paginate(rows, s.VersionSerializer, ordering=("-number",))

    @operation(Scope.READ, s.VersionDetailSerializer)
    def get_version(self, pk: UUID, number: int) -> Version:
        """Get a version with its text and the operations that created it."""
        return version_of(self.playbook(pk), number)

    @operation(
        Scope.READ,
        s.VersionDiffSerializer,
        parameters=[OpenApiParameter("against", POSITIVE, description="Default: the one before.")],
    )
    def diff_versions(self, pk: UUID, number: int) -> Any:
        """Compare a version with another one, bullet by bullet."""
        against = self.query_integer("against", default=max(1, number - 1)) or 1
        diff = diff_versions(playbook=self.playbook(pk), number=number, against=against)
        return {**vars(diff), "version": number, "against": against}

    @operation(Scope.WRITE, {201: s.VersionSerializer}, once=True)
    def rollback_playbook(self, pk: UUID, number: int) -> Version:
        """Make an older version current again, as a new version; nothing is deleted.

        409 when the current version already has its text.
        """
        playbook = self.own_playbook(pk)
        return rollback_playbook(playbook=playbook, by=self.principal, number=number)

    @operation(Scope.WRITE, {201: s.VersionSerializer}, once=True)
    def undo_version(self, pk: UUID, number: int) -> Version:
        """Undo what one version changed, as a new version; later changes stay.

        409 when one of its bullets has changed since, or when it only counted votes.
        """
        return undo_version(playbook=self.own_playbook(pk), by=self.principal, number=number)

    @operation(Scope.READ, {(200, "text/plain"): str})
    def export_seals(self, pk: UUID) -> HttpResponse:
        """Export the seal of each version and what it covers, as JSON Lines."""
        lines = export_seals(playbook=self.own_playbook(pk))
        return HttpResponse(lines, content_type="text/plain; charset=utf-8")


class ReviewItemViewSet(BasePlaybookViewSet):
    """Only people decide: no API key can approve what agents contributed."""

    @operation(
        Scope.READ,
        s.ReviewItemSerializer(many=True),
        parameters=[OpenApiParameter("state", str, enum=REVIEW_STATES, default="pending")],
    )
    def list_review_items(self, pk: UUID) -> Response:
        """List the texts of agents and models that need review, newest first."""
        state = self.query_choice("state", REVIEW_STATES)
        rows = ReviewItem.objects.for_user(self.principal).filter(playbook=self.own_playbook(pk))
        if state != "all":
            rows = rows.filter(state=state)
        return self.paginate(rows.select_related("delta", "version"), s.ReviewItemSerializer)

    @operation(
        Scope.ACCOUNT, {201: s.ReviewItemSerializer}, takes=s.ReviewItemApproveSerializer, once=True
    )
    def approve_review_item(self, pk: UUID, review: UUID, sent: dict[str, Any]) -> ReviewItem:
        """Approve an item, optionally with your own text: a new version is published."""
        item = self.review_item(pk, review)
        return approve_review_item(item=item, by=self.principal, **sent)

    @operation(Scope.ACCOUNT, s.ReviewItemSerializer)
    def decline_review_item(self, pk: UUID, review: UUID) -> ReviewItem:
        """Decline an item; the same text is rejected from now on."""
        return decline_review_item(item=self.review_item(pk, review), by=self.principal)

    def review_item(self, pk: UUID, review: UUID) -> ReviewItem:
        rows = ReviewItem.objects.for_user(self.principal).filter(playbook=self.own_playbook(pk))
        return rows.select_related("delta", "playbook", "version").fetch(review)


class TrialViewSet(BasePlaybookViewSet):
    @operation(Scope.READ, s.TrialSerializer(many=True))
    def list_trials(self, pk: UUID) -> Response:
        """List the trials of a playbook, newest first."""
        rows = self.trials().filter(playbook=self.own_playbook(pk))
        return self.paginate(rows, s.TrialSerializer)

    @operation(Scope.WRITE, {201: s.TrialSerializer}, takes=s.TrialStartSerializer, once=True)
    def start_trial(self, pk: UUID, sent: dict[str, Any]) -> Trial:
        """Start a trial of a bullet or the whole playbook. Evolutions wait until it ends."""
        return start_trial(playbook=self.own_playbook(pk), by=self.principal, **sent)

    @operation(Scope.READ, s.TrialSerializer)
    def get_trial(self, pk: UUID) -> Trial:
        """Get a trial: its arms, and how strongly they say that the newest is worse or better."""
        return self.trials().fetch(pk)

    @operation(Scope.WRITE, s.TrialSerializer, takes=s.TrialEndSerializer)
    def end_trial(self, pk: UUID, sent: dict[str, Any]) -> Trial:
        """End a trial: everybody reads the newest version, or the stable one as a new version."""
        return stop_trial(trial=self.trials().fetch(pk), by=self.principal, **sent)

    def trials(self) -> TrialQuerySet:
        rows: TrialQuerySet = Trial.objects.for_user(self.principal)
        return rows.with_versions()
