"""Pages of the playground: start a chat, read it, ask in it, judge it; and the recorded one."""

from uuid import UUID

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.errors import AceError, Invalid, RateLimited, TooLarge
from accounts.http import UserRequest
from accounts.scopes import Principal
from evolution import playground
from evolution.models import AgentSession
from evolution.playground_demo import demo_sides
from evolution.playground_forms import RateForm, StartForm
from evolution.playground_sides import Side, side_of
from evolution.playground_stream import events_async, events_sync
from evolution.worker.conversing import Answered, Conversing
from playbooks.models import Playbook

RECENT_CHATS = 8
# A proxy that compresses or collects would hold the pieces back.
HEADERS = {
    "Cache-Control": "no-store, no-transform",
    "Content-Encoding": "identity",
    "X-Accel-Buffering": "no",
}


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def start(request: UserRequest) -> HttpResponse:
    access = playground.access_of(request.user)
    playbooks = readable_by(request)
    chosen = chosen_of(request, playbooks)
    form = None
    if chosen is not None and access:
        first = {"version": request.GET.get("version"), "against": request.GET.get("against")}
        form = StartForm(request.POST or None, initial=first, playbook=chosen, access=access)
        by = Principal.of(request.user)
        made = form.send(playground.open_chat, by=by, playbook=chosen)
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
    return render(request, "evolution/playground.html", context, status=status)


@login_required
@require_safe
def chat(request: UserRequest, pk: UUID) -> HttpResponse:
    return show(request, pk)


@login_required
@require_POST
def ask(request: UserRequest, pk: UUID) -> HttpResponse:
    """Without a script: the whole answers, on a new page."""
    by, question = Principal.of(request.user), request.POST.get("question", "")
    try:
        turns = playground.begin_turns(sessions=open_sides(request, pk), by=by, question=question)
    except (Invalid, TooLarge) as refusal:
        return show(request, pk, question=question, refusal=refusal.message)
    except RateLimited as refusal:
        page = show(request, pk, question=question, refusal=refusal.message)
        page.status_code, page["Retry-After"] = refusal.status, str(refusal.retry_after)
        return page
    answered = playground.ask_all(turns)
    failed = [one.error for one in answered if one.answer is None]
    if failed:
        return show(request, pk, question=question, refusal=failed[0])
    return redirect("evolution:playground_chat", pk)


@login_required
@require_POST
async def stream(request: UserRequest, pk: UUID) -> HttpResponseBase:
    """One side's answer as server-sent events, while the model makes it."""
    try:
        turn = await sync_to_async(begin)(request, pk)
    except AceError as refusal:
        wait = {"Retry-After": refusal.retry_after} if isinstance(refusal, RateLimited) else {}
        return JsonResponse({"message": refusal.message}, status=refusal.status, headers=wait)

    def shown(answered: Answered) -> Side | None:
        if answered.answer is None:
            return None
        return side_of(turn.turn.session, user=request.user)

    make = events_async if isinstance(request, ASGIRequest) else events_sync
    body = make(turn, shown)
    return StreamingHttpResponse(body, content_type="text/event-stream", headers=HEADERS)


@login_required
@require_POST
def rate(request: UserRequest, pk: UUID) -> HttpResponse:
    session = side(request, pk)
    form = RateForm(request.POST)
    made = form.send(playground.rate_chat, session=session, by=Principal.of(request.user))
    if made is None:
        return show(request, pk, refusal=form.reason)
    messages.success(request, "Recorded: this chat is an outcome now, and closed.")
    return redirect("evolution:playground_chat", pk)


@login_required
@require_safe
def demo(request: UserRequest) -> HttpResponse:
    return render(request, "evolution/playground_demo.html", {"sides": demo_sides()})


def side(request: UserRequest, pk: UUID) -> AgentSession:
    """This very session, and not the other of its pair."""
    return next(one for one in playground.chat_of(request.user, pk) if one.pk == pk)


def begin(request: UserRequest, pk: UUID) -> Conversing:
    by, question = Principal.of(request.user), request.POST.get("question", "")
    return playground.begin_turn(session=side(request, pk), by=by, question=question)


def open_sides(request: UserRequest, pk: UUID) -> list[AgentSession]:
    sides = playground.chat_of(request.user, pk)
    return [session for session in sides if session.is_open] or sides[:1]


def show(request: UserRequest, pk: UUID, *, question: str = "", refusal: str = "") -> HttpResponse:
    """The chat as it is stored; with a refusal also what was asked, to be sent again."""
    sessions = playground.chat_of(request.user, pk)
    context = {
        "chat": sessions[0],
        "sides": [side_of(session, user=request.user) for session in sessions],
        "is_open": any(session.is_open for session in sessions),
        "is_half_open": len({session.is_open for session in sessions}) > 1,
        "question": question,
        "refusal": refusal,
        "access": playground.access_of(request.user),
    }
    return render(
        request, "evolution/playground_chat.html", context, status=422 if refusal else 200
    )


def readable_by(request: UserRequest) -> list[Playbook]:
    """The person's own playbooks, then the starters."""
    rows = Playbook.objects.for_user(request.user, include_starters=True).active()
    found = rows.exclude(current_version=None).order_by("name").select_related("current_version")
    return sorted(found.defer("current_version__text"), key=lambda row: row.is_starter)


def chosen_of(request: UserRequest, playbooks: list[Playbook]) -> Playbook | None:
    """The playbook that the form names (NotFound), or that the address names, else the first."""
    if request.method == "POST":
        # Never another one instead: a chat would begin with what nobody chose.
        rows = Playbook.objects.for_user(request.user, include_starters=True)
        return rows.select_related("current_version").fetch(request.POST.get("playbook", ""))
    by_id = {str(playbook.pk): playbook for playbook in playbooks}
    return by_id.get(request.GET.get("playbook", ""), next(iter(playbooks), None))


def recent_chats(request: UserRequest) -> list[AgentSession]:
    """The newest, each pair once."""
    rows = AgentSession.objects.for_user(request.user).filter(source="playground")
    rows = rows.exclude(message_count=0).select_related("playbook")
    newest: dict[object, AgentSession] = {}
    for row in rows[: 2 * RECENT_CHATS]:
        newest.setdefault(row.pair_id or row.pk, row)
    return list(newest.values())[:RECENT_CHATS]
