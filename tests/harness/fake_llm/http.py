"""The fake model's HTTP side: one answer, or one fault, for each request."""

import json
import socket
import struct
import sys
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

from tests.harness.fake_llm.answers import role_of
from tests.harness.fake_llm.stream import STREAM_FAULTS, stream

if TYPE_CHECKING:
    from tests.harness.fake_llm.model import FakeLLM

FAULTS = frozenset(
    {"hang", "drip", "reset", "redirect", "huge", "not_json"}
    | {"truncated", "refusal", "content_filter", "empty_choices", "null_content"}
    | {"malformed", "wrong_schema", "fenced", "array", "no_usage"}
    | STREAM_FAULTS
)
HUGE = 3 * 1024 * 1024


@dataclass(frozen=True)
class Fault:
    """What goes wrong with a call: a `kind` of FAULTS, or an HTTP `status` with an error `code`."""

    kind: str = "status"
    status: int = 0
    code: str = ""
    message: str = "made to fail"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """A request as it came in."""

    role: str
    body: dict[str, Any]
    headers: dict[str, str]
    raw: bytes = b""

    @property
    def prompt(self) -> str:
        """The user message that carries the playbook and what changes."""
        return str(self.body["messages"][1]["content"])


class Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class RequestHandler(BaseHTTPRequestHandler):
    """POST /v1/chat/completions, one request for each connection."""

    llm: ClassVar["FakeLLM"]
    timeout = 20

    def log_message(self, format: str, *args: Any) -> None:
        if self.llm.verbose:
            super().log_message(format, *args)

    def do_POST(self) -> None:
        size = int(self.headers["content-length"])
        raw = self.rfile.read(size)
        # Else who asked was killed while asking.
        if len(raw) == size:
            self._answer(raw)

    def _answer(self, raw: bytes) -> None:
        body = json.loads(raw)
        headers = {key.lower(): value for key, value in self.headers.items()}
        role = role_of(body["messages"])
        call = Call("chat" if body.get("stream") else role, body, headers, raw)
        fault, answer = self.llm.take(call)
        self.llm.wait(call.role)
        if fault is None and body.get("stream"):
            stream(self, call, answer["pieces"], "")
        elif fault is None and call.role:
            self._reply(call, json.dumps(answer))
        elif fault is None:
            self._reply(call, json.dumps(answer), message=answer)
        elif fault.kind == "status":
            self._error(fault)
        elif disturb := getattr(self, f"_{fault.kind}", None):
            disturb()
        elif body.get("stream"):
            stream(self, call, answer["pieces"], fault.kind)
        else:
            self._reply(call, _spoilt(fault.kind, answer), fault.kind)

    do_GET = do_POST

    def _reply(
        self, call: Call, content: str, kind: str = "", message: dict[str, Any] | None = None
    ) -> None:
        """`message` in its place, with calls of tools: to an agent that is not one of our roles."""
        message = {"role": "assistant", "content": content, "refusal": None} | (message or {})
        if kind == "refusal":
            message |= {"content": None, "refusal": "I cannot help with that."}
        if kind == "null_content":
            message["content"] = None
        reason = {"truncated": "length", "content_filter": "content_filter"}.get(kind, "stop")
        reason = "tool_calls" if message.get("tool_calls") else reason
        sent = sum(len(m.get("content") or "") for m in call.body["messages"]) // 4
        caps = [call.body.get(name) for name in ("max_completion_tokens", "max_tokens")]
        # A reply that was cut off has used up its cap.
        received = (next(filter(None, caps), 0) if kind == "truncated" else 0) or len(
            content
        ) // 4 + 1
        usage = {
            "prompt_tokens": sent,
            "completion_tokens": received,
            "total_tokens": sent + received,
            "prompt_tokens_details": {"cached_tokens": sent // 4},
        }
        reply = {
            "id": f"chatcmpl-{self.llm.count()}",
            "object": "chat.completion",
            "created": 0,
            "model": call.body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": usage,
        }
        if kind == "empty_choices":
            reply["choices"] = []
        if kind == "no_usage":
            del reply["usage"]
        else:
            with self.llm.lock:
                self.llm.served_tokens += usage["total_tokens"]  # type: ignore[operator]
        self._send(200, json.dumps(reply).encode())

    def _error(self, fault: Fault) -> None:
        error = {"message": fault.message, "type": "error", "param": None, "code": fault.code}
        self._send(fault.status, json.dumps({"error": error}).encode(), **fault.headers)

    def _send(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        headers = {"content-type": "application/json", "x-request-id": "req-fake"} | headers
        for name, value in {**headers, "content-length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _hang(self) -> None:
        self.llm.closing.wait()

    def _drip(self) -> None:
        """A header that never ends, a byte at a time."""
        self.wfile.write(b"HTTP/1.0 200 OK\r\nx-slow: ")
        while not self.llm.closing.wait(0.02):
            self.wfile.write(b"a")
            self.wfile.flush()

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def _redirect(self) -> None:
        self._send(307, b"", location=f"{self.llm.base_url}/chat/completions")

    def _huge(self) -> None:
        self._send(200, b'{"choices": "' + b"x" * HUGE + b'"}')

    def _not_json(self) -> None:
        self._send(200, b"<html>A proxy says hello.</html>", **{"content-type": "text/html"})


def _spoilt(kind: str, answer: dict[str, Any]) -> str:
    text = json.dumps(answer)
    return {
        "malformed": "I would rather tell you a story.",
        "wrong_schema": '{"mood": "good"}',
        "truncated": text[: len(text) // 2],
        "fenced": f"Here you are:\n```json\n{text}\n```\nAnything else?",
        "array": json.dumps(answer.get("operations", [answer])),
    }.get(kind, text)
