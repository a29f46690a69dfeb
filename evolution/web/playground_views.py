"""Pages of the playground: start, show and rate chats, and stream answers.

event: piece   {"text": "…"}                     as often as the model sends text
event: end     {"html": …, "cited": […], …}      stored; the turn as the page shows it
event: failed  {"message": "…"}                  no answer, and nothing is stored
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import connections
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.errors import AceError
from core.http.requests import UserRequest
from core.security.scopes import Principal
from evolution.models import AgentSession
from evolution.playground import chat_lifecycle
from evolution.playground.chat_display import (
    ChatSide,
    chat_side,
    displayed_message,
    document_read_by,
)
from evolution.playground.chat_turn import ChatTurn, TurnResult
from evolution.web.forms import RateForm, StartForm
from playbooks.models import Playbook

RECENT_CHATS = 8
RenderSide = Callable[[TurnResult], ChatSide | None]
KEEPALIVE_SECONDS = 15.0
"""Seconds without text after which a comment keeps the connection alive."""
KEEPALIVE_COMMENT = b": still waiting\n\n"
# Keeps proxies from compressing or buffering the stream.
HEADERS = {
    "Cache-Control": "no-store, no-transform",
    "Content-Encoding": "identity",
    "X-Accel-Buffering": "no",
}


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def start(request: UserRequest) -> HttpResponse:
    access = chat_lifecycle.model_access(request.user)
    playbooks = readable_by(request)
    chosen = chosen_playbook(request, playbooks)
    form = None
    if chosen is not None and access:
        first = {"version": request.GET.get("version"), "against": request.GET.get("against")}
        form = StartForm(request.POST or None, initial=first, playbook=chosen, access=access)
        by = Principal.of(request.user)
        made = form.submit(chat_lifecycle.open_chat, by=by, playbook=chosen)
        if made is not None:
            return redirect("evolution:playground_chat", made.pk)
    context = {
        "access": access,
        "playbooks": playbooks,
        "chosen": chosen,
        "form": form,
        "recent": recent_chats(request),
    }
    status = form.status if form else 200
    return render(request, "evolution/playground/start.html", context, status=status)


@login_required
@require_safe
def chat(request: UserRequest, pk: UUID) -> HttpResponse:
    return render_chat(request, pk)


@login_required
@require_POST
async def stream(request: UserRequest, pk: UUID) -> HttpResponseBase:
    """One side's answer as server-sent events."""
    try:
        turn = await sync_to_async(begin)(request, pk)
    except AceError as refusal:
        told = {"message": refusal.message}
        return JsonResponse(told, status=refusal.status, headers=dict(refusal.headers))

    def shown(answered: TurnResult) -> ChatSide | None:
        if answered.answer is None:
            return None
        return chat_side(turn.session, user=request.user)

    body = events(turn, shown)
    return StreamingHttpResponse(body, content_type="text/event-stream", headers=HEADERS)


async def events(turn: ChatTurn, shown: RenderSide) -> AsyncIterator[bytes]:
    """The events; when the browser leaves, Django cancels this, and the call ends."""
    # On the request's own thread, which keeps its connection until the response is over.
    await sync_to_async(connections.close_all)()
    loop, arrived = asyncio.get_running_loop(), asyncio.Queue[str | TurnResult]()

    def pass_on(what: str | TurnResult) -> None:
        loop.call_soon_threadsafe(arrived.put_nowait, what)

    turn.start(pass_on, pass_on)
    try:
        while True:
            try:
                what = await asyncio.wait_for(arrived.get(), KEEPALIVE_SECONDS)
            except TimeoutError:
                yield KEEPALIVE_COMMENT
                continue
            if isinstance(what, TurnResult):
                yield await sync_to_async(end_event)(what, shown)
                return
            yield event("piece", {"text": what})
    finally:
        turn.cancel()


def end_event(answered: TurnResult, shown: RenderSide) -> bytes:
    """The last event; reads the stored answer, now that the model is done."""
    side, answer = shown(answered), answered.answer
    if side is None or answer is None:
        return event("failed", {"message": answered.error})
    turn = {
        "side": side,
        "one": displayed_message(answer, document_read_by(answer.session)),
        "note": answered.error,
    }
    return event(
        "end",
        {
            "html": render_to_string("evolution/playground/_answer.html", turn),
            "total": render_to_string("evolution/playground/_chat_cost.html", {"side": side}),
            "cited": sorted(side.cited),
        },
    )


def event(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


@login_required
@require_POST
def rate(request: UserRequest, pk: UUID) -> HttpResponse:
    session = side(request, pk)
    form = RateForm(request.POST)
    made = form.submit(chat_lifecycle.rate_chat, session=session, by=Principal.of(request.user))
    if made is None:
        return render_chat(request, pk, refusal=form.reason)
    messages.success(request, "Outcome saved. This chat is closed.")
    return redirect("evolution:playground_chat", pk)


def side(request: UserRequest, pk: UUID) -> AgentSession:
    """This session, not the other of its pair."""
    return next(one for one in chat_lifecycle.chat_sessions(request.user, pk) if one.pk == pk)


def begin(request: UserRequest, pk: UUID) -> ChatTurn:
    by, question = Principal.of(request.user), request.POST.get("question", "")
    return chat_lifecycle.begin_turn(session=side(request, pk), by=by, question=question)


def render_chat(request: UserRequest, pk: UUID, *, refusal: str = "") -> HttpResponse:
    """The stored chat; `refusal` is why a rating was refused."""
    sessions = chat_lifecycle.chat_sessions(request.user, pk)
    context = {
        "chat": sessions[0],
        "sides": [chat_side(session, user=request.user) for session in sessions],
        "is_open": any(session.is_open for session in sessions),
        "is_half_open": len({session.is_open for session in sessions}) > 1,
        "refusal": refusal,
        "access": chat_lifecycle.model_access(request.user),
    }
    status = 422 if refusal else 200
    return render(request, "evolution/playground/chat.html", context, status=status)


def readable_by(request: UserRequest) -> list[Playbook]:
    """The user's own playbooks, then the starters."""
    rows = Playbook.objects.for_user(request.user, include_starters=True).active()
    found = rows.exclude(current_version=None).order_by("name").select_related("current_version")
    return sorted(found.defer("current_version__text"), key=lambda row: row.is_starter)


def chosen_playbook(request: UserRequest, playbooks: list[Playbook]) -> Playbook | None:
    """The playbook in the form (or NotFound), in the query string, else the first."""
    if request.method == "POST":
        rows = Playbook.objects.for_user(request.user, include_starters=True)
        return rows.select_related("current_version").fetch(request.POST.get("playbook", ""))
    by_id = {str(playbook.pk): playbook for playbook in playbooks}
    return by_id.get(request.GET.get("playbook", ""), next(iter(playbooks), None))


def recent_chats(request: UserRequest) -> list[AgentSession]:
    """The newest chats, each pair once."""
    rows = AgentSession.objects.for_user(request.user).filter(source="playground")
    rows = rows.exclude(message_count=0).select_related("playbook")
    newest: dict[object, AgentSession] = {}
    for row in rows[: 2 * RECENT_CHATS]:
        newest.setdefault(row.pair_id or row.pk, row)
    return list(newest.values())[:RECENT_CHATS]
