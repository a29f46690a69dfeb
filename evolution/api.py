"""The loop at the REST door: outcomes in, evolutions to follow."""

from typing import ClassVar
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.idempotency import idempotency_key, idempotent
from accounts.rest import Door
from accounts.scopes import Scope
from evolution import services
from evolution import shapes as s
from evolution.evidence import playbook_evidence
from evolution.models import EvolutionJob, Outcome
from evolution.querysets import JobQuerySet
from playbooks.models import Playbook


class OutcomesDoor(Door):
    """GET, POST /playbooks/{id}/outcomes."""

    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.WRITE}

    @extend_schema(operation_id="list_outcomes", responses=s.OutcomeShape(many=True))
    def get(self, request: Request, pk: UUID) -> Response:
        """What agents reported on one of your playbooks, newest first."""
        playbook = Playbook.objects.for_user(self.who).fetch(pk)
        rows = s.OutcomeShape.rows(Outcome.objects.filter(playbook=playbook))
        return self.page(rows, s.OutcomeShape)

    @extend_schema(
        operation_id="report_outcome", request=s.OutcomeIn, responses={201: s.RecordedShape}
    )
    @idempotent()
    def post(self, request: Request, pk: UUID) -> Response:
        """Report how a task went; when enough outcomes are pending, an evolution starts."""
        sent = self.sent(s.OutcomeIn)
        sent["idempotency_key"] = sent["idempotency_key"] or idempotency_key(request)
        playbook = Playbook.objects.for_user(self.who).fetch(pk)
        report = services.report_outcome(playbook=playbook, by=self.who, **sent)
        headers = {} if report.is_new else {"Idempotency-Replayed": "true"}
        return Response(s.RecordedShape(report).data, status=201, headers=headers)


class MetricsDoor(Door):
    """GET /playbooks/{id}/metrics."""

    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(operation_id="read_metrics", responses=s.MetricsShape)
    def get(self, request: Request, pk: UUID) -> Response:
        """Outcomes by status, success rate (0 to 1), votes, evolutions."""
        playbook = Playbook.objects.for_user(self.who).select_related("current_version").fetch(pk)
        return Response(s.MetricsShape(services.playbook_metrics(playbook=playbook)).data)


class EvidenceDoor(Door):
    """GET /playbooks/{id}/evidence."""

    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(
        operation_id="read_evidence",
        parameters=[
            OpenApiParameter("since", int, description="The first version counted as after."),
            OpenApiParameter("signal", str, enum=Outcome.Signal.values),
        ],
        responses=s.EvidenceShape,
    )
    def get(self, request: Request, pk: UUID) -> Response:
        """Whether it helped: success rates by version, and before against after a version."""
        playbook = Playbook.objects.for_user(self.who).fetch(pk)
        evidence = playbook_evidence(
            playbook=playbook,
            since=self.number("since"),
            signal=request.query_params.get("signal", ""),
        )
        return Response(s.EvidenceShape(evidence).data)


class EvolutionsDoor(Door):
    """GET, POST /playbooks/{id}/evolutions."""

    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.EVOLVE}

    @extend_schema(operation_id="list_evolutions", responses=s.JobShape(many=True))
    def get(self, request: Request, pk: UUID) -> Response:
        """The evolutions of one of your playbooks, newest first."""
        playbook = Playbook.objects.for_user(self.who).fetch(pk)
        return self.page(jobs(self).filter(playbook=playbook), s.JobShape)

    @extend_schema(
        operation_id="trigger_evolution",
        request=None,
        responses={200: s.TriggeredShape, 202: s.TriggeredShape},
    )
    @idempotent()
    def post(self, request: Request, pk: UUID) -> Response:
        """Evolve now. 202 for a new evolution, 200 with the one that is active already."""
        playbook = Playbook.objects.for_user(self.who).fetch(pk)
        triggered = services.trigger_evolution(playbook=playbook, by=self.who)
        status = 202 if triggered.is_new else 200
        return Response(s.TriggeredShape(triggered).data, status=status)


class EvolutionDoor(Door):
    """GET /evolutions/{id}."""

    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(operation_id="read_evolution", responses=s.JobShape)
    def get(self, request: Request, pk: UUID) -> Response:
        """Where one evolution stands."""
        return Response(s.JobShape(jobs(self).fetch(pk)).data)


class CancelDoor(Door):
    """POST /evolutions/{id}/cancel."""

    scopes: ClassVar = {"POST": Scope.EVOLVE}

    @extend_schema(operation_id="cancel_evolution", request=None, responses=s.JobShape)
    def post(self, request: Request, pk: UUID) -> Response:
        """Stop an active evolution; its outcomes wait for the next one."""
        job = services.cancel_evolution(job=jobs(self).fetch(pk), by=self.who)
        return Response(s.JobShape(job).data)


class RetryDoor(Door):
    """POST /evolutions/{id}/retry."""

    scopes: ClassVar = {"POST": Scope.EVOLVE}

    @extend_schema(operation_id="retry_evolution", request=None, responses={202: s.JobShape})
    def post(self, request: Request, pk: UUID) -> Response:
        """Queue a failed or cancelled evolution again."""
        job = services.retry_evolution(job=jobs(self).fetch(pk), by=self.who)
        return Response(s.JobShape(job).data, status=202)


def jobs(door: Door) -> JobQuerySet:
    """The caller's evolutions, with what their shape shows."""
    rows: JobQuerySet = EvolutionJob.objects.for_user(door.who)
    return rows.select_related("from_version", "to_version", "playbook")
