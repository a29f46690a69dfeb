"""The fake model's streamed answers: pieces that come when a test lets them, and their faults.

llm.tell("Check ", "the sign [str-00001].")     # the next streamed answer, piece by piece
drip = llm.drip(); drip.let(1); drip.let(2)      # pieces go out one by one from now on
llm.fail("chat", "stream_reset")                 # after the first piece
"""

import json
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.harness.fake_llm.http import Call, RequestHandler

CUT_SHORT = frozenset(
    {"stream_reset", "stream_drip", "stream_malformed", "stream_error", "stream_cut", "stream_huge"}
)
STREAM_FAULTS = CUT_SHORT | {"whole"}


class Drip:
    """Lets pieces of streamed answers through, as many as a test says; all of them once freed."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._allowed = self.sent = 0
        self._is_free = False

    def take(self) -> None:
        """Wait until one more may go."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_free or self._allowed > 0)
            self._allowed -= 1
            self.sent += 1

    def let(self, pieces: int) -> None:
        with self._changed:
            self._allowed += pieces
            self._changed.notify_all()

    def free(self) -> None:
        with self._changed:
            self._is_free = True
            self._changed.notify_all()


def stream(handler: "RequestHandler", call: "Call", pieces: list[str], kind: str) -> None:
    """Answer as a provider does that was asked to stream."""
    if kind == "whole":
        handler._reply(call, "".join(pieces))
        return
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream; charset=utf-8")
    handler.send_header("x-request-id", "req-fake")
    handler.end_headers()
    for event in _events(handler, call, pieces, kind):
        handler.wfile.write(event)
        handler.wfile.flush()
    if kind == "stream_reset":
        handler._reset()
    while kind == "stream_drip" and not handler.llm.closing.wait(0.02):
        handler.wfile.write(b":")
        handler.wfile.flush()


def _events(
    handler: "RequestHandler", call: "Call", pieces: list[str], kind: str
) -> Iterator[bytes]:
    chunk = {"id": f"chatcmpl-{handler.llm.count()}", "model": call.body["model"]}
    yield _event(chunk | {"choices": [_choice({"role": "assistant", "content": ""})]})
    for piece in pieces[:1] if kind in CUT_SHORT else pieces:
        if handler.llm.drips is not None:
            handler.llm.drips.take()
        yield _event(chunk | {"choices": [_choice({"content": piece})]})
    if kind == "stream_malformed":
        yield b'data: {"choices": [\n\n'
    elif kind == "stream_error":
        yield _event({"error": {"message": "overloaded", "type": "server_error"}})
    elif kind == "stream_huge":
        yield b"data: " + b"x" * 3 * 1024 * 1024
    elif kind not in CUT_SHORT:
        yield from _ending(handler, call, chunk, pieces, kind)


def _ending(
    handler: "RequestHandler", call: "Call", chunk: dict[str, Any], pieces: list[str], kind: str
) -> Iterator[bytes]:
    reason = {"truncated": "length", "content_filter": "content_filter"}.get(kind, "stop")
    refusal = {"refusal": "I cannot help with that."} if kind == "refusal" else {}
    yield _event(chunk | {"choices": [_choice(refusal, reason)]})
    counted = call.body.get("stream_options", {}).get("include_usage") and kind != "no_usage"
    sent = sum(len(message["content"]) for message in call.body["messages"]) // 4
    received = len("".join(pieces)) // 4 + 1
    with handler.llm.lock:
        handler.llm.served_tokens += sent + received if counted else 0
    if counted:
        usage = {
            "prompt_tokens": sent,
            "completion_tokens": received,
            "total_tokens": sent + received,
        }
        yield _event(chunk | {"choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _choice(delta: dict[str, str], reason: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "finish_reason": reason}


def _event(chunk: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(chunk)}\n\n".encode()
