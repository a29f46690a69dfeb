"""REST views of outcomes, evidence, evolutions, sources and agent sessions."""

from typing import Any
from uuid import UUID

from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter
from rest_framework.response import Response

from core.errors import Invalid
from core.http.requests import site_url
from core.rest.idempotency import idempotency_key
from core.rest.views import IDEMPOTENCY_KEY, BaseViewSet, operation, represent
from core.security.scopes import Scope
from evolution.api import serializers as s
from evolution.evidence.ledger import bullet_ledger, playbook_evidence, playbook_metrics
from evolution.evidence.provenance import outcome_with_edits, session_provenance
from evolution.evidence.sources import list_sources, rollback_source
from evolution.jobs.lifecycle import cancel_evolution, retry_evolution, trigger_evolution
from evolution.models import (
    AgentSession,
    EvolutionJob,
    JobQuerySet,
    Outcome,
    SessionMessage,
    SessionQuerySet,
    ShareLink,
)
from evolution.outcomes import cases, correction, reporting
from evolution.sessions import recording as services
from evolution.sessions.validation import NewMessage
from evolution.sharing import create_share_link, revoke_share_link
from playbooks.models import Playbook


class BaseEvolutionViewSet(BaseViewSet):
    def playbook(self, pk: UUID) -> Playbook:
        """The caller's own."""
        return Playbook.objects.for_user(self.principal).select_related("current_version").fetch(pk)


class OutcomeViewSet(BaseEvolutionViewSet):
    @operation(Scope.READ, s.OutcomeSerializer(many=True))
    def list_outcomes(self, pk: UUID) -> Response:
        """List the outcomes of one of your playbooks, newest first."""
        rows = s.OutcomeSerializer.rows(Outcome.objects.filter(playbook=self.playbook(pk)))
        return self.paginate(rows, s.OutcomeSerializer)

    @operation(
        Scope.REPORT,
        {201: s.RecordedOutcomeSerializer},
        takes=s.OutcomeCreateSerializer,
        forgiving=True,
        parameters=[IDEMPOTENCY_KEY],
    )
    def report_outcome(self, pk: UUID, sent: dict[str, Any]) -> Response:
        """Report how a task went; when enough outcomes are pending, an evolution starts."""
        # The outcome itself keeps the key: keeping the response too would double what is written.
        known = idempotency_key(self.request)
        sent["idempotency_key"] = sent["idempotency_key"] or known
        playbook = reporting.OWN_PLAYBOOK.fetch(self.principal, pk)
        report = reporting.report_outcome(playbook=playbook, by=self.principal, **sent)
        headers = {} if report.is_new else {"Idempotency-Replayed": "true"}
        shown = represent(report, s.RecordedOutcomeSerializer)
        return Response(shown, status=201, headers=headers)

    @operation(
        Scope.REPORT,
        s.OutcomeListSerializer,
        takes=s.OutcomeUpdateSerializer,
        parameters=[OpenApiParameter("ref", str, required=True)],
    )
    def update_outcomes_by_ref(self, sent: dict[str, Any]) -> Any:
        """Correct all outcomes that were reported with a reference, up to 100."""
        rows = correction.correct_by_ref(
            ref=self.request.query_params.get("ref", ""),
            by=self.principal,
            status=sent.get("outcome", ""),
            notes=sent["notes"],
        )
        found = Outcome.objects.filter(pk__in=[row.pk for row in rows])
        return {"results": s.OutcomeSerializer.rows(found)}

    @operation(Scope.REPORT, s.OutcomeDetailSerializer, takes=s.OutcomeUpdateSerializer)
    def update_outcome(self, pk: UUID, sent: dict[str, Any]) -> Outcome:
        """Correct an outcome: a check such as CI found how the task really went."""
        status = sent.pop("outcome", "")
        outcome = Outcome.objects.for_user(self.principal).fetch(pk)
        correction.correct_outcome(outcome=outcome, by=self.principal, status=status, **sent)
        return outcome_with_edits(by=self.principal, pk=pk)

    @operation(Scope.READ, s.OutcomeDetailSerializer)
    def get_outcome(self, pk: UUID) -> Outcome:
        """Get an outcome, its reflection and what became of it."""
        return outcome_with_edits(by=self.principal, pk=pk)


class EvidenceViewSet(BaseEvolutionViewSet):
    @operation(Scope.WRITE, s.CaseSerializer(many=True))
    def list_cases(self, pk: UUID) -> Response:
        """List the cases of a playbook with their right answers, newest first."""
        return self.paginate(self.playbook(pk).cases.select_related("outcome"), s.CaseSerializer)

    @operation(Scope.WRITE, {201: s.CasesAddedSerializer}, takes=s.CaseCreateSerializer)
    def add_cases(self, pk: UUID, sent: dict[str, Any]) -> Any:
        """Add cases; new versions are checked on them before anybody reads them."""
        added = cases.add_cases(playbook=self.playbook(pk), by=self.principal, **sent)
        return {"added": added}

    @operation(Scope.REPORT, {200: s.CaseTaskSerializer, 204: None})
    def get_next_case(self, pk: UUID) -> Any:
        """Take the next case to answer while a version waits for its check; 204 if none does."""
        task = cases.next_case(playbook=self.playbook(pk), by=self.principal)
        return task or Response(status=204)

    @operation(Scope.READ, s.PlaybookMetricsSerializer)
    def get_metrics(self, pk: UUID) -> Any:
        """Get counts of outcomes, bullets and evolutions, and the success rate (0 to 1)."""
        return playbook_metrics(playbook=self.playbook(pk))

    @operation(
        Scope.READ,
        s.EvidenceSerializer,
        parameters=[OpenApiParameter("signal", str, enum=Outcome.Signal.values)],
    )
    def get_evidence(self, pk: UUID) -> Any:
        """Get success rates and costs by version: history, not proof. Trials prove."""
        signal = self.request.query_params.get("signal", "")
        return playbook_evidence(playbook=self.playbook(pk), signal=signal)

    @operation(
        Scope.READ,
        s.LedgerSerializer,
        parameters=[OpenApiParameter("sort", str, description="Field or -field; default -cited.")],
    )
    def get_bullet_ledger(self, pk: UUID) -> Any:
        """Get success rates of each active bullet: correlation, not causation."""
        sort = self.request.query_params.get("sort", "")
        return {"results": bullet_ledger(playbook=self.playbook(pk), sort=sort)}

    @operation(Scope.READ, s.SourceListSerializer)
    def list_sources(self, pk: UUID) -> Any:
        """List the keys, apps and people that this playbook learned from, latest first."""
        return {"results": list_sources(playbook=self.playbook(pk))}

    @operation(
        Scope.ACCOUNT, s.SourceRollbackResultSerializer, takes=s.SourceRollbackSerializer, once=True
    )
    def rollback_source(self, pk: UUID, sent: dict[str, Any]) -> Any:
        """Revert what one source taught or edited, in a new version; your own edits stay."""
        return rollback_source(playbook=self.playbook(pk), by=self.principal, **sent)


class ShareLinkViewSet(BaseEvolutionViewSet):
    """Only people publish: no API key can share what it reads."""

    @operation(Scope.READ, s.ShareLinkSerializer(many=True))
    def list_share_links(self, pk: UUID) -> Response:
        """List the share links of a playbook, including expired ones, newest first."""
        return self.paginate(self.playbook(pk).share_links.all(), s.ShareLinkSerializer)

    @operation(
        Scope.ACCOUNT, {201: s.ShareLinkCreatedSerializer}, takes=s.ShareLinkCreateSerializer
    )
    def create_share_link(self, pk: UUID, sent: dict[str, Any]) -> Any:
        """Share a version diff or the evidence with anybody who gets the URL, for some days."""
        made = create_share_link(playbook=self.playbook(pk), by=self.principal, **sent)
        link: Any = made[0]
        link.url = site_url(self.request._request) + reverse("evolution:shared", args=[made[1]])
        return link

    @operation(Scope.ACCOUNT, {204: None})
    def revoke_share_link(self, pk: UUID) -> None:
        """Revoke a share link at once."""
        links = ShareLink.objects.for_user(self.principal).select_related("playbook")
        revoke_share_link(link=links.fetch(pk), by=self.principal)


class EvolutionViewSet(BaseEvolutionViewSet):
    @operation(Scope.READ, s.EvolutionSerializer(many=True))
    def list_evolutions(self, pk: UUID) -> Response:
        """List the evolutions of one of your playbooks, newest first."""
        return self.paginate(self.jobs().filter(playbook=self.playbook(pk)), s.EvolutionSerializer)

    @operation(
        Scope.EVOLVE,
        {202: s.TriggeredEvolutionSerializer, 200: s.TriggeredEvolutionSerializer},
        once=True,
    )
    def trigger_evolution(self, pk: UUID) -> Response:
        """Start an evolution: 202 for a new one, 200 if one is active or nothing is pending."""
        playbook = Playbook.objects.for_user(self.principal).fetch(pk)
        triggered = trigger_evolution(playbook=playbook, by=self.principal)
        status = 202 if triggered.is_new else 200
        return Response(represent(triggered, s.TriggeredEvolutionSerializer), status=status)

    @operation(Scope.READ, s.EvolutionDetailSerializer)
    def get_evolution(self, pk: UUID) -> EvolutionJob:
        """Get the status of an evolution."""
        return self.jobs().fetch(pk)

    @operation(Scope.EVOLVE, s.EvolutionDetailSerializer)
    def cancel_evolution(self, pk: UUID) -> EvolutionJob:
        """Cancel an active evolution; its outcomes stay pending for the next one."""
        cancel_evolution(job=self.jobs().fetch(pk), by=self.principal)
        return self.jobs().fetch(pk)

    @operation(Scope.EVOLVE, {202: s.EvolutionDetailSerializer})
    def retry_evolution(self, pk: UUID) -> EvolutionJob:
        """Queue a failed or cancelled evolution again."""
        retry_evolution(job=self.jobs().fetch(pk), by=self.principal)
        return self.jobs().fetch(pk)

    def jobs(self) -> JobQuerySet:
        """The caller's evolutions with the related rows that the serializer reads."""
        rows: JobQuerySet = EvolutionJob.objects.for_user(self.principal)
        rows = rows.select_related("from_version", "to_version", "playbook")
        return rows.with_refused_count()


class SessionViewSet(BaseEvolutionViewSet):
    @operation(
        Scope.READ,
        s.SessionSerializer(many=True),
        parameters=[
            OpenApiParameter("playbook_id", UUID, description="Only sessions of this playbook.")
        ],
    )
    def list_sessions(self) -> Response:
        """List the sessions of your agents, newest first."""
        rows = self.sessions()
        if wanted := self.request.query_params.get("playbook_id", ""):
            try:
                playbook = UUID(wanted)
            except ValueError:
                raise Invalid.field("playbook_id", "Send the id of a playbook.") from None
            rows = rows.filter(playbook=self.readable_playbook(playbook))
        return self.paginate(rows, s.SessionSerializer)

    @operation(Scope.REPORT, {201: s.SessionSerializer}, takes=s.SessionCreateSerializer, once=True)
    def open_session(self, sent: dict[str, Any]) -> AgentSession:
        """Open a session; its messages become the trace of an outcome when it is closed."""
        wanted = sent.pop("playbook_id")
        playbook = self.readable_playbook(wanted) if wanted else None
        return services.open_session(by=self.principal, playbook=playbook, **sent)

    @operation(Scope.READ, s.SessionDetailSerializer)
    def get_session(self, pk: UUID) -> AgentSession:
        """Get a session with its outcome, evolution, edits and version."""
        row: Any = self.sessions().fetch(pk)
        row.provenance = session_provenance(row)
        return row  # type: ignore[no-any-return]  # with an attribute of the answer

    @operation(Scope.WRITE, {204: None})
    def delete_session(self, pk: UUID) -> None:
        """Delete a session with its messages; its outcome stays."""
        services.delete_session(session=self.sessions().fetch(pk), by=self.principal)

    @operation(Scope.READ, s.SessionMessageSerializer(many=True))
    def list_messages(self, pk: UUID) -> Response:
        """List the messages of a session, in order."""
        rows = SessionMessage.objects.filter(session=self.sessions().fetch(pk))
        return self.paginate(rows, s.SessionMessageSerializer, ordering=("position",))

    @operation(
        Scope.REPORT,
        {201: s.StoredMessageListSerializer},
        takes=s.SessionMessagesCreateSerializer,
        once=True,
    )
    def add_messages(self, pk: UUID, sent: dict[str, Any]) -> Any:
        """Add messages to an open session; credentials in them are redacted."""
        new = [NewMessage(**message) for message in sent["messages"]]
        return {"results": services.add_messages(session=self.sessions().fetch(pk), messages=new)}

    @operation(Scope.REPORT, s.ClosedSessionSerializer, takes=s.SessionCloseSerializer)
    def close_session(self, pk: UUID, sent: dict[str, Any]) -> Any:
        """Close a session; with `outcome` it is reported, with the messages as its trace."""
        report = services.SessionReport(**sent) if "outcome" in sent else None
        session = self.sessions().fetch(pk)
        made = services.close_session(session=session, by=self.principal, report=report)
        return {"session": session, "report": made}

    def sessions(self) -> SessionQuerySet:
        """The caller's sessions with the related rows that the serializer reads."""
        rows: SessionQuerySet = AgentSession.objects.for_user(self.principal)
        return rows.select_related("version", "playbook").defer("version__text")

    def readable_playbook(self, pk: UUID) -> Playbook:
        """A playbook that the caller may read: their own or a starter."""
        rows = Playbook.objects.for_user(self.principal, include_starters=True)
        return rows.select_related("current_version").fetch(pk)
