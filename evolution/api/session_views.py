"""REST views of agent sessions and their messages."""

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.errors import Invalid
from core.rest.idempotency import idempotent
from core.rest.views import BaseAPIView
from core.security.scopes import Scope
from evolution.api import session_serializers as s
from evolution.evidence.provenance import session_provenance
from evolution.models import AgentSession, SessionMessage, SessionQuerySet
from evolution.sessions import recording as services
from evolution.sessions.validation import NewMessage, ToolCall
from playbooks.models import Playbook

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
