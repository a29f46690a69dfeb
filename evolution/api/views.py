"""REST views of outcomes, evidence, evolutions, sources and agent sessions."""

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.errors import Invalid
from core.rest.idempotency import idempotency_key, idempotent
from core.rest.views import BaseAPIView
from core.security.scopes import Scope
from evolution.api import serializers as s
from evolution.evidence.ledger import bullet_ledger
from evolution.evidence.provenance import outcome_with_edits, session_provenance
from evolution.evidence.sources import list_sources, rollback_source
from evolution.evidence.versions import playbook_evidence
from evolution.jobs.lifecycle import cancel_evolution, retry_evolution, trigger_evolution
from evolution.models import (
    AgentSession,
    EvolutionJob,
    JobQuerySet,
    Outcome,
    SessionMessage,
    SessionQuerySet,
)
from evolution.outcomes import cases, correction, reporting
from evolution.outcomes.metrics import playbook_metrics
from evolution.sessions import recording as services
from evolution.sessions.validation import NewMessage, ToolCall
from playbooks.models import Playbook


class OutcomeListView(BaseAPIView):
    """GET, POST /playbooks/{id}/outcomes."""

    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.REPORT}

    @extend_schema(operation_id="list_outcomes", responses=s.OutcomeSerializer(many=True))
    def get(self, request: Request, pk: UUID) -> Response:
        """List the outcomes of one of your playbooks, newest first."""
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        rows = s.OutcomeSerializer.rows(Outcome.objects.filter(playbook=playbook))
        return self.paginate(rows, s.OutcomeSerializer)

    @extend_schema(
        operation_id="report_outcome",
        request=s.OutcomeCreateSerializer,
        responses={201: s.RecordedOutcomeSerializer},
    )
    @idempotent()
    def post(self, request: Request, pk: UUID) -> Response:
        """Report how a task went; when enough outcomes are pending, an evolution starts."""
        sent = self.validated_body(s.OutcomeCreateSerializer)
        sent["idempotency_key"] = sent["idempotency_key"] or idempotency_key(request)
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        report = reporting.report_outcome(playbook=playbook, by=self.principal, **sent)
        headers = {} if report.is_new else {"Idempotency-Replayed": "true"}
        return Response(s.RecordedOutcomeSerializer(report).data, status=201, headers=headers)


class OutcomeByRefView(BaseAPIView):
    """PATCH /outcomes?ref=…."""

    scopes: ClassVar = {"PATCH": Scope.REPORT}

    @extend_schema(
        operation_id="update_outcomes_by_ref",
        parameters=[OpenApiParameter("ref", str, required=True)],
        request=s.OutcomeUpdateSerializer,
        responses=s.OutcomeListSerializer,
    )
    def patch(self, request: Request) -> Response:
        """Correct all outcomes that were reported with a reference, up to 100."""
        sent = self.validated_body(s.OutcomeUpdateSerializer)
        rows = correction.correct_by_ref(
            ref=request.query_params.get("ref", ""),
            by=self.principal,
            status=sent.get("outcome", ""),
            notes=sent["notes"],
        )
        found = Outcome.objects.filter(pk__in=[row.pk for row in rows])
        return Response(s.OutcomeListSerializer({"results": s.OutcomeSerializer.rows(found)}).data)


class OutcomeDetailView(BaseAPIView):
    """GET, PATCH /outcomes/{id}."""

    scopes: ClassVar = {"GET": Scope.READ, "PATCH": Scope.REPORT}

    @extend_schema(
        operation_id="update_outcome",
        request=s.OutcomeUpdateSerializer,
        responses=s.OutcomeDetailSerializer,
    )
    def patch(self, request: Request, pk: UUID) -> Response:
        """Correct an outcome: a check that knows, such as CI, says how the task really went."""
        sent = self.validated_body(s.OutcomeUpdateSerializer)
        status = sent.pop("outcome", "")
        outcome = Outcome.objects.for_user(self.principal).fetch(pk)
        correction.correct_outcome(outcome=outcome, by=self.principal, status=status, **sent)
        return self.get(request, pk)

    @extend_schema(operation_id="get_outcome", responses=s.OutcomeDetailSerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """Get an outcome, its reflection and what became of it."""
        outcome = outcome_with_edits(by=self.principal, pk=pk)
        return Response(s.OutcomeDetailSerializer(outcome).data)


class CaseListView(BaseAPIView):
    """GET, POST /playbooks/{id}/cases."""

    scopes: ClassVar = {"GET": Scope.WRITE, "POST": Scope.WRITE}

    @extend_schema(operation_id="list_cases", responses=s.CaseSerializer(many=True))
    def get(self, request: Request, pk: UUID) -> Response:
        """List the cases of a playbook with their right answers, newest first."""
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        return self.paginate(playbook.cases.select_related("outcome"), s.CaseSerializer)

    @extend_schema(
        operation_id="add_cases",
        request=s.CaseCreateSerializer,
        responses={201: s.CasesAddedSerializer},
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """Add cases; new versions are checked on them before anybody reads them."""
        sent = self.validated_body(s.CaseCreateSerializer)
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        added = cases.add_cases(playbook=playbook, by=self.principal, **sent)
        return Response({"added": added}, status=201)


class NextCaseView(BaseAPIView):
    """POST /playbooks/{id}/cases/next."""

    scopes: ClassVar = {"POST": Scope.REPORT}

    @extend_schema(
        operation_id="get_next_case", request=None, responses={200: s.CaseTaskSerializer, 204: None}
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """Take the next case to answer while a version waits for its check; 204 if none does."""
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        task = cases.next_case(playbook=playbook, by=self.principal)
        return Response(s.CaseTaskSerializer(task).data) if task else Response(status=204)


class PlaybookMetricsView(BaseAPIView):
    """GET /playbooks/{id}/metrics."""

    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(operation_id="get_metrics", responses=s.PlaybookMetricsSerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """Get counts of outcomes, bullets and evolutions, and the success rate (0 to 1)."""
        playbook = (
            Playbook.objects.for_user(self.principal).select_related("current_version").fetch(pk)
        )
        return Response(s.PlaybookMetricsSerializer(playbook_metrics(playbook=playbook)).data)


class EvidenceView(BaseAPIView):
    """GET /playbooks/{id}/evidence."""

    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(
        operation_id="get_evidence",
        parameters=[OpenApiParameter("signal", str, enum=Outcome.Signal.values)],
        responses=s.EvidenceSerializer,
    )
    def get(self, request: Request, pk: UUID) -> Response:
        """Get success rates and costs by version: history, not proof. Trials prove."""
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        signal = request.query_params.get("signal", "")
        return Response(
            s.EvidenceSerializer(playbook_evidence(playbook=playbook, signal=signal)).data
        )


class LedgerView(BaseAPIView):
    """GET /playbooks/{id}/ledger."""

    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(
        operation_id="get_bullet_ledger",
        parameters=[OpenApiParameter("sort", str, description="-cited; one of the fields.")],
        responses=s.LedgerSerializer,
    )
    def get(self, request: Request, pk: UUID) -> Response:
        """Get what each active bullet was seen together with: not cause. A trial of it tells."""
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        rows = bullet_ledger(playbook=playbook, sort=request.query_params.get("sort", ""))
        return Response(s.LedgerSerializer({"results": rows}).data)


class EvolutionListView(BaseAPIView):
    """GET, POST /playbooks/{id}/evolutions."""

    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.EVOLVE}

    @extend_schema(operation_id="list_evolutions", responses=s.EvolutionSerializer(many=True))
    def get(self, request: Request, pk: UUID) -> Response:
        """List the evolutions of one of your playbooks, newest first."""
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        return self.paginate(jobs(self).filter(playbook=playbook), s.EvolutionSerializer)

    @extend_schema(
        operation_id="trigger_evolution",
        request=None,
        responses={200: s.TriggeredEvolutionSerializer, 202: s.TriggeredEvolutionSerializer},
    )
    @idempotent()
    def post(self, request: Request, pk: UUID) -> Response:
        """Start an evolution: 202 for a new one, 200 if one is active or nothing is pending."""
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        triggered = trigger_evolution(playbook=playbook, by=self.principal)
        status = 202 if triggered.is_new else 200
        return Response(s.TriggeredEvolutionSerializer(triggered).data, status=status)


class EvolutionDetailView(BaseAPIView):
    """GET /evolutions/{id}."""

    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(operation_id="get_evolution", responses=s.EvolutionDetailSerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """Get the status of an evolution."""
        return evolution_response(self, pk)


class CancelEvolutionView(BaseAPIView):
    """POST /evolutions/{id}/cancel."""

    scopes: ClassVar = {"POST": Scope.EVOLVE}

    @extend_schema(
        operation_id="cancel_evolution", request=None, responses=s.EvolutionDetailSerializer
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """Cancel an active evolution; its outcomes stay pending for the next one."""
        cancel_evolution(job=jobs(self).fetch(pk), by=self.principal)
        return evolution_response(self, pk)


class RetryEvolutionView(BaseAPIView):
    """POST /evolutions/{id}/retry."""

    scopes: ClassVar = {"POST": Scope.EVOLVE}

    @extend_schema(
        operation_id="retry_evolution", request=None, responses={202: s.EvolutionDetailSerializer}
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """Queue a failed or cancelled evolution again."""
        retry_evolution(job=jobs(self).fetch(pk), by=self.principal)
        return evolution_response(self, pk, status=202)


def jobs(view: BaseAPIView) -> JobQuerySet:
    """The caller's evolutions with the related rows that the serializer reads."""
    rows: JobQuerySet = EvolutionJob.objects.for_user(view.principal)
    rows = rows.select_related("from_version", "to_version", "playbook")
    return rows.with_refused_count()


def evolution_response(view: BaseAPIView, pk: UUID, *, status: int = 200) -> Response:
    """The response with one evolution as it is now."""
    return Response(s.EvolutionDetailSerializer(jobs(view).fetch(pk)).data, status=status)


class SourceListView(BaseAPIView):
    """GET /playbooks/{id}/sources."""

    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(operation_id="list_sources", responses=s.SourceListSerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """List the keys, apps and people that this playbook learned from, latest first."""
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        return Response(s.SourceListSerializer({"results": list_sources(playbook=playbook)}).data)


class RollbackSourceView(BaseAPIView):
    """POST /playbooks/{id}/sources/rollback."""

    scopes: ClassVar = {"POST": Scope.ACCOUNT}

    @extend_schema(
        operation_id="rollback_source",
        request=s.SourceRollbackSerializer,
        responses=s.SourceRollbackResultSerializer,
    )
    @idempotent()
    def post(self, request: Request, pk: UUID) -> Response:
        """Revert what one source taught or edited, in a new version; your own edits stay."""
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        sent = self.validated_body(s.SourceRollbackSerializer)
        made = rollback_source(playbook=playbook, by=self.principal, **sent)
        return Response(s.SourceRollbackResultSerializer(made).data)


PLAYBOOK_ID = OpenApiParameter("playbook_id", UUID, description="Only sessions of this playbook.")


class SessionListView(BaseAPIView):
    """GET, POST /sessions."""

    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.REPORT}

    @extend_schema(
        operation_id="list_sessions",
        parameters=[PLAYBOOK_ID],
        responses=s.SessionSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """List the sessions of your agents, newest first."""
        rows = sessions(self)
        if wanted := request.query_params.get("playbook_id", ""):
            rows = rows.filter(playbook=playbook_of(self, uuid_in(wanted)))
        return self.paginate(rows, s.SessionSerializer)

    @extend_schema(
        operation_id="open_session",
        request=s.SessionCreateSerializer,
        responses={201: s.SessionSerializer},
    )
    @idempotent()
    def post(self, request: Request) -> Response:
        """Open a session; its messages become the trace of an outcome when it is closed."""
        sent = self.validated_body(s.SessionCreateSerializer)
        wanted = sent.pop("playbook_id")
        playbook = playbook_of(self, wanted) if wanted else None
        made = services.open_session(by=self.principal, playbook=playbook, **sent)
        return Response(s.SessionSerializer(made).data, status=201)


class SessionDetailView(BaseAPIView):
    """GET, DELETE /sessions/{id}."""

    scopes: ClassVar = {"GET": Scope.READ, "DELETE": Scope.WRITE}

    @extend_schema(operation_id="get_session", responses=s.SessionDetailSerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """Get a session with its outcome, evolution, edits and version."""
        row: Any = sessions(self).fetch(pk)
        row.provenance = session_provenance(row)
        return Response(s.SessionDetailSerializer(row).data)

    @extend_schema(operation_id="delete_session", responses={204: None})
    def delete(self, request: Request, pk: UUID) -> Response:
        """Delete a session with its messages; its outcome stays."""
        services.delete_session(session=sessions(self).fetch(pk), by=self.principal)
        return Response(status=204)


class SessionMessageListView(BaseAPIView):
    """GET, POST /sessions/{id}/messages."""

    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.REPORT}
    ordering: ClassVar = ("position",)

    @extend_schema(operation_id="list_messages", responses=s.SessionMessageSerializer(many=True))
    def get(self, request: Request, pk: UUID) -> Response:
        """List the messages of a session, in order."""
        session = sessions(self).fetch(pk)
        return self.paginate(
            SessionMessage.objects.filter(session=session), s.SessionMessageSerializer
        )

    @extend_schema(
        operation_id="add_messages",
        request=s.SessionMessagesCreateSerializer,
        responses={201: s.StoredMessageListSerializer},
    )
    @idempotent()
    def post(self, request: Request, pk: UUID) -> Response:
        """Add messages to an open session; credentials in them are redacted."""
        session = sessions(self).fetch(pk)
        new = [
            message_in(sent)
            for sent in self.validated_body(s.SessionMessagesCreateSerializer)["messages"]
        ]
        rows = services.add_messages(session=session, messages=new)
        return Response(s.StoredMessageListSerializer({"results": rows}).data, status=201)


class CloseSessionView(BaseAPIView):
    """POST /sessions/{id}/close."""

    scopes: ClassVar = {"POST": Scope.REPORT}

    @extend_schema(
        operation_id="close_session",
        request=s.SessionCloseSerializer,
        responses=s.ClosedSessionSerializer,
    )
    def post(self, request: Request, pk: UUID) -> Response:
        """Close a session; with `outcome` it is reported, with the messages as its trace."""
        sent = self.validated_body(s.SessionCloseSerializer)
        report = services.SessionReport(**sent) if "outcome" in sent else None
        session = sessions(self).fetch(pk)
        closed = services.close_session(session=session, by=self.principal, report=report)
        return Response(s.ClosedSessionSerializer(closed).data)


def sessions(view: BaseAPIView) -> SessionQuerySet:
    """The caller's sessions with the related rows that the serializer reads."""
    rows: SessionQuerySet = AgentSession.objects.for_user(view.principal)
    return rows.select_related("version", "playbook").defer("version__text")


def playbook_of(view: BaseAPIView, pk: UUID) -> Playbook:
    """A playbook that the caller may read: their own or a starter."""
    rows = Playbook.objects.for_user(view.principal, include_starters=True)
    return rows.select_related("current_version").fetch(pk)


def uuid_in(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Invalid.field("playbook_id", "Send the id of a playbook.") from None


def message_in(sent: dict[str, Any]) -> NewMessage:
    calls = [ToolCall(**call) for call in sent["tool_calls"]]
    return NewMessage(**{**sent, "tool_calls": calls})
