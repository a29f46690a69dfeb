"""Agents' sessions at the REST door."""

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import Invalid
from accounts.idempotency import idempotent
from accounts.rest import Door
from accounts.scopes import Scope
from evolution import session_shapes as s
from evolution import sessions as services
from evolution.chains import chain_of
from evolution.models import AgentSession, SessionMessage
from evolution.querysets import SessionQuerySet
from playbooks.models import Playbook

PLAYBOOK_ID = OpenApiParameter("playbook_id", UUID, description="Only those of this playbook.")


class SessionsDoor(Door):
    """GET, POST /sessions."""

    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.WRITE}

    @extend_schema(
        operation_id="list_sessions", parameters=[PLAYBOOK_ID], responses=s.SessionShape(many=True)
    )
    def get(self, request: Request) -> Response:
        """Your agents' sessions, newest first."""
        rows = sessions(self)
        if wanted := request.query_params.get("playbook_id", ""):
            rows = rows.filter(playbook=playbook_of(self, uuid_in(wanted)))
        return self.page(rows, s.SessionShape)

    @extend_schema(
        operation_id="open_session", request=s.SessionIn, responses={201: s.SessionShape}
    )
    @idempotent()
    def post(self, request: Request) -> Response:
        """Open a session: what is said in it becomes the trace of an outcome when it is closed."""
        sent = self.sent(s.SessionIn)
        wanted = sent.pop("playbook_id")
        playbook = playbook_of(self, wanted) if wanted else None
        made = services.open_session(by=self.who, playbook=playbook, **sent)
        return Response(s.SessionShape(made).data, status=201)


class SessionDoor(Door):
    """GET, DELETE /sessions/{id}."""

    scopes: ClassVar = {"GET": Scope.READ, "DELETE": Scope.WRITE}

    @extend_schema(operation_id="read_session", responses=s.SessionWithChainShape)
    def get(self, request: Request, pk: UUID) -> Response:
        """One session, and what followed from it: outcome, evolution, edits, version."""
        row: Any = sessions(self).fetch(pk)
        row.chain = chain_of(row)
        return Response(s.SessionWithChainShape(row).data)

    @extend_schema(operation_id="delete_session", responses={204: None})
    def delete(self, request: Request, pk: UUID) -> Response:
        """Delete a session with its messages; the outcome that it became stays."""
        services.delete_session(session=sessions(self).fetch(pk), by=self.who)
        return Response(status=204)


class MessagesDoor(Door):
    """GET, POST /sessions/{id}/messages."""

    scopes: ClassVar = {"GET": Scope.READ, "POST": Scope.WRITE}
    ordering: ClassVar = ("position",)

    @extend_schema(operation_id="list_messages", responses=s.MessageShape(many=True))
    def get(self, request: Request, pk: UUID) -> Response:
        """What was said in a session, in its order."""
        session = sessions(self).fetch(pk)
        return self.page(SessionMessage.objects.filter(session=session), s.MessageShape)

    @extend_schema(operation_id="add_messages", request=s.MessagesIn, responses={201: s.AddedShape})
    @idempotent()
    def post(self, request: Request, pk: UUID) -> Response:
        """Add messages to an open session; credentials in them are blanked out."""
        session = sessions(self).fetch(pk)
        new = [message_in(sent) for sent in self.sent(s.MessagesIn)["messages"]]
        rows = services.add_messages(session=session, messages=new)
        return Response(s.AddedShape({"results": rows}).data, status=201)


class CloseDoor(Door):
    """POST /sessions/{id}/close."""

    scopes: ClassVar = {"POST": Scope.WRITE}

    @extend_schema(operation_id="close_session", request=s.CloseIn, responses=s.ClosedShape)
    def post(self, request: Request, pk: UUID) -> Response:
        """Close a session; with `outcome` it is reported, with what was said as its trace."""
        sent = self.sent(s.CloseIn)
        report = services.SessionReport(**sent) if "outcome" in sent else None
        session = sessions(self).fetch(pk)
        closed = services.close_session(session=session, by=self.who, report=report)
        return Response(s.ClosedShape(closed).data)


def sessions(door: Door) -> SessionQuerySet:
    """The caller's sessions, with what their shape shows."""
    rows: SessionQuerySet = AgentSession.objects.for_user(door.who)
    return rows.select_related("version", "playbook").defer("version__text")


def playbook_of(door: Door, pk: UUID) -> Playbook:
    """A playbook that the caller may read: one of their own, or a starter."""
    rows = Playbook.objects.for_user(door.who, include_starters=True)
    return rows.select_related("current_version").fetch(pk)


def uuid_in(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Invalid.field("playbook_id", "Send the id of a playbook.") from None


def message_in(sent: dict[str, Any]) -> services.NewMessage:
    calls = [services.ToolCall(**call) for call in sent["tool_calls"]]
    return services.NewMessage(**{**sent, "tool_calls": calls})
