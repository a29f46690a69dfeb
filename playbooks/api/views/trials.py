"""REST views of trials: list, start, read, end."""

from typing import ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.rest.idempotency import idempotent
from core.rest.views import BaseAPIView
from core.security.scopes import Scope
from playbooks.api.serializers import TrialEndSerializer, TrialSerializer, TrialStartSerializer
from playbooks.api.views.base import BasePlaybookView
from playbooks.models import Trial
from playbooks.services.trials import start_trial, stop_trial


class TrialListView(BasePlaybookView):
    """GET, POST /playbooks/{id}/trials."""

    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.WRITE}

    @extend_schema(operation_id="list_trials", responses=TrialSerializer(many=True))
    def get(self, request: Request, pk: UUID) -> Response:
        """List the trials of a playbook, newest first."""
        rows = Trial.objects.for_user(self.principal).filter(playbook=self.own_playbook(pk))
        return self.paginate(rows.with_versions(), TrialSerializer)

    @extend_schema(
        operation_id="start_trial", request=TrialStartSerializer, responses={201: TrialSerializer}
    )
    @idempotent()
    def post(self, request: Request, pk: UUID) -> Response:
        """Try a bullet, or the whole playbook: some readings do without. Evolutions wait."""
        sent = self.validated_body(TrialStartSerializer)
        trial = start_trial(playbook=self.own_playbook(pk), by=self.principal, **sent)
        return Response(TrialSerializer(trial).data, status=201)


class TrialDetailView(BaseAPIView):
    """GET /trials/{id}."""

    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(operation_id="get_trial", responses=TrialSerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """Get a trial: its arms, and how strongly they say that the newest is worse or better."""
        rows = Trial.objects.for_user(self.principal).with_versions()
        return Response(TrialSerializer(rows.fetch(pk)).data)


class TrialEndView(BaseAPIView):
    """POST /trials/{id}/end."""

    scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(operation_id="end_trial", request=TrialEndSerializer, responses=TrialSerializer)
    def post(self, request: Request, pk: UUID) -> Response:
        """End a trial: everybody reads the newest version, or the stable one as a new version."""
        sent = self.validated_body(TrialEndSerializer)
        trial = Trial.objects.for_user(self.principal).with_versions().fetch(pk)
        return Response(TrialSerializer(stop_trial(trial=trial, by=self.principal, **sent)).data)
