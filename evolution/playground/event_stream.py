"""The answer of a turn as server-sent events.

    event: piece   {"text": "…"}                     as often as the model sends text
    event: end     {"html": …, "cited": […], …}      stored; the turn as the page shows it
    event: failed  {"message": "…"}                  no answer, and nothing is stored

Under ASGI nothing here waits on a thread; under WSGI a process of its own is held all the while.
"""

import asyncio
import json
import queue
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.template.loader import render_to_string

from evolution.playground.chat_display import ChatSide, displayed_message, document_read_by
from evolution.playground.chat_lifecycle import release_connections
from evolution.playground.chat_turn import ChatTurn, TurnResult

RenderSide = Callable[[TurnResult], ChatSide | None]
KEEPALIVE_SECONDS = 15.0
"""Seconds without text after which a comment keeps the connection alive."""
KEEPALIVE_COMMENT = b": still waiting\n\n"


async def events_async(turn: ChatTurn, shown: RenderSide) -> AsyncIterator[bytes]:
    """The events; when the browser leaves, Django cancels this, and the call ends."""
    # On the request's own thread, which keeps its connection until the response is over.
    await sync_to_async(release_connections)()
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
            yield text_event(what)
    finally:
        turn.cancel()


def events_sync(turn: ChatTurn, shown: RenderSide) -> Iterator[bytes]:
    """The same for a server that speaks WSGI; it closes this when the browser leaves."""
    release_connections()
    arrived = queue.SimpleQueue[str | TurnResult]()
    turn.start(arrived.put, arrived.put)
    try:
        while True:
            try:
                what = arrived.get(timeout=KEEPALIVE_SECONDS)
            except queue.Empty:
                yield KEEPALIVE_COMMENT
                continue
            if isinstance(what, TurnResult):
                yield end_event(what, shown)
                return
            yield text_event(what)
    finally:
        turn.cancel()


def text_event(text: str) -> bytes:
    return event("piece", {"text": text})


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
