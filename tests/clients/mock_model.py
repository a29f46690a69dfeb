"""A small stand-in for a model: it speaks Anthropic's and OpenAI's streams and follows a script.

No intelligence: each turn of a conversation plays the next step of the script. Real clients take
it for their provider (`ANTHROPIC_BASE_URL`, or a custom provider of Codex), so that whole agent
sessions run offline.
"""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

UNITTEST = """\
import unittest


class Test(unittest.TestCase):
    def test(self):
        self.assertTrue({})
"""
Json = dict[str, Any]
Results = list[str]


@dataclass(frozen=True)
class Call:
    """Call a tool; `arguments` may need what earlier calls of the conversation returned."""

    tool: str
    arguments: Json | Callable[[Results], Json]

    def fill(self, results: Results) -> Json:
        return self.arguments(results) if callable(self.arguments) else self.arguments


@dataclass(frozen=True)
class Say:
    """Answer with a text, which ends the turn; `{results}` are not looked at."""

    text: str


Step = Call | Say


@dataclass
class MockModel:
    """Its address, the script that it plays, and every request that it got."""

    script: Sequence[Step]
    url: str = ""
    seen: list[Json] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def step(self, results: Results, texts: int) -> Step:
        """The next step after `results` of calls and a number of `texts` of the model."""
        done = len(results) + texts
        return self.script[done] if done < len(self.script) else Say("Done.")

    def everything_read(self) -> str:
        """Every text of every request, as the model got it."""
        return "\n".join(text for request in self.seen for text in texts_in(request))


def texts_in(value: Any) -> Iterator[str]:
    """Every string inside a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from texts_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_in(part)


def structured(text: str) -> Any:
    """The tool's structured result inside what a client hands to its model."""
    decoder = json.JSONDecoder()
    for start in (index for index, letter in enumerate(text) if letter in "{["):
        try:
            return decoder.raw_decode(text[start:])[0]
        except ValueError:
            continue
    raise AssertionError(f"no JSON in a tool result: {text[:200]!r}")


@contextmanager
def serve_model(script: Sequence[Step]) -> Iterator[MockModel]:
    """A model at a free port of this machine, for as long as the block runs."""
    model = MockModel(script)
    bound = type("Bound", (Answering,), {"model": model})
    server = ThreadingHTTPServer(("127.0.0.1", 0), bound)
    thread = threading.Thread(target=server.serve_forever, name="mock model", daemon=True)
    thread.start()
    model.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


class Answering(BaseHTTPRequestHandler):
    """Routes of both providers; an unknown route is a failure of the test."""

    model: MockModel
    protocol_version = "HTTP/1.0"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the clients' own output is what counts."""

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_GET(self) -> None:
        self._json({"object": "list", "data": [], "models": []})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/messages"):
            self._stream(anthropic_events(self.model, body))
        elif path.endswith(":streamGenerateContent"):
            self._stream(gemini_events(self.model, body))
        elif path.endswith("/count_tokens"):
            self._json({"input_tokens": 100})
        elif path.endswith("/responses"):
            self._stream(openai_events(self.model, body))
        else:
            self._json({})

    def _json(self, value: Json) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def _stream(self, events: Iterator[Json]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for event in events:
            kind = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{kind}data: {json.dumps(event)}\n\n".encode())


def anthropic_events(model: MockModel, body: Json) -> Iterator[Json]:
    """The stream of one Anthropic message."""
    model.seen.append(body)
    step: Step = Say("ok")
    if body.get("tools"):  # without tools it is a side errand, such as naming the session
        blocks = [
            b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]
        ]
        results = [_text_of(b.get("content")) for b in blocks if b.get("type") == "tool_result"]
        texts = sum(1 for m in body["messages"] if m["role"] == "assistant" and not _calls(m))
        step = model.step(results, texts)
    usage = {"input_tokens": 10, "output_tokens": 5}
    message: Json = {"id": f"msg_{len(model.seen)}", "type": "message", "role": "assistant"}
    message |= {"model": body.get("model", "mock"), "content": [], "stop_reason": None}
    yield {"type": "message_start", "message": message | {"stop_sequence": None, "usage": usage}}
    block: Json
    if isinstance(step, Say):
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": step.text}
    else:
        name = full_name(step.tool, [tool["name"] for tool in body["tools"]])
        arguments = json.dumps(step.fill(results))
        block = {"type": "tool_use", "id": f"toolu_{len(model.seen)}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": arguments}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "end_turn" if isinstance(step, Say) else "tool_use"
    yield {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}
    yield {"type": "message_stop"}


def _calls(message: Json) -> bool:
    content = message["content"]
    return isinstance(content, list) and any(b.get("type") == "tool_use" for b in content)


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(texts_in(content))


def openai_events(model: MockModel, body: Json) -> Iterator[Json]:
    """The stream of one OpenAI response."""
    model.seen.append(body)
    given = [item for item in body.get("input", []) if isinstance(item, dict)]
    results = [_text_of(i["output"]) for i in given if i.get("type") == "function_call_output"]
    texts = sum(1 for i in given if i.get("type") == "message" and i.get("role") == "assistant")
    step = model.step(results, texts)
    identity = f"resp_{len(model.seen)}"
    yield {"type": "response.created", "response": {"id": identity}}
    if isinstance(step, Say):
        content = [{"type": "output_text", "text": step.text}]
        item: Json = {"type": "message", "role": "assistant", "id": "m", "content": content}
    else:
        item = {"type": "function_call", "call_id": f"call_{len(model.seen)}"}
        item |= openai_name(step.tool, body.get("tools", []))
        item["arguments"] = json.dumps(step.fill(results))
    yield {"type": "response.output_item.done", "item": item}
    usage: Json = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    usage |= {"input_tokens_details": None, "output_tokens_details": None}
    yield {"type": "response.completed", "response": {"id": identity, "usage": usage}}


def gemini_events(model: MockModel, body: Json) -> Iterator[Json]:
    """The stream of one Gemini answer."""
    model.seen.append(body)
    parts = [part for content in body["contents"] for part in content.get("parts", [])]
    results = [_text_of(p["functionResponse"]) for p in parts if "functionResponse" in p]
    offered = [f["name"] for t in body.get("tools", []) for f in t.get("functionDeclarations", [])]
    step: Step = model.step(results, 0) if offered else Say("ok")
    part: Json = {"text": step.text} if isinstance(step, Say) else {}
    if isinstance(step, Call):
        name = full_name(step.tool, offered)
        part = {"functionCall": {"name": name, "args": step.fill(results)}}
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    yield {"candidates": [candidate], "usageMetadata": usage}


def openai_name(tool: str, offered: list[Json]) -> Json:
    """How this request names the tool: flat, or inside the namespace of its server."""
    for entry in offered:
        if entry.get("type") == "namespace":
            for inner in entry["tools"]:
                if inner["name"].endswith(tool):
                    return {"name": inner["name"], "namespace": entry["name"]}
    return {"name": full_name(tool, [e["name"] for e in offered if "name" in e])}


def full_name(tool: str, offered: Sequence[str]) -> str:
    """The offered name of a tool, whatever the client put before it."""
    for name in offered:
        if name.endswith(tool):
            return name
    raise AssertionError(f"{tool} was not offered; these were: {', '.join(offered)}")
