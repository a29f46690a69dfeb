"""The requests to the server, as bytes, and the time of each answer."""

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any

from benchmarks.mcp_load import (
    HANDSHAKE,
    REVISIONS,
    mcp_request,
    once,
    open_mcp_session,
    percentile,
    read_answer,
    tool_request,
)

ROUNDS = 3


@dataclass
class Timings:
    """Seconds of the calls that succeeded; `span` is how long was asked, all rounds together."""

    seconds: list[float] = field(default_factory=list)
    errors: int = 0
    span: float = 0.0

    def figures(self) -> dict[str, float]:
        """Calls a second, and milliseconds of the middle one, of the 95th and 99th in 100."""
        shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
        found = {name: round(percentile(self.seconds, share), 2) for name, share in shares.items()}
        a_second = round(len(self.seconds) / self.span, 1) if self.span else 0.0
        return found | {"calls_per_s": a_second, "calls": len(self.seconds), "errors": self.errors}


def http(where: dict[str, Any], path: str, *, body: Any = None, cookie: bool = False) -> bytes:
    """A GET, or a POST of `body`, with the key or the session of the prepared person."""
    who = f"Cookie: {where['cookie']}" if cookie else f"Authorization: Bearer {where['token']}"
    sent = b"" if body is None else json.dumps(body).encode()
    head = (
        f"{'GET' if body is None else 'POST'} {path} HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{where['port']}\r\n{who}\r\nContent-Type: application/json\r\n"
        f"Accept: */*\r\nContent-Length: {len(sent)}\r\n\r\n"
    )
    return head.encode() + sent


def interface_requests(where: dict[str, Any]) -> dict[str, bytes]:
    """Reading and reporting through each interface, and what each cannot cost less than."""
    pk = where["playbook_id"]
    report = {"task_description": "Make the build green", "outcome": "success"}
    found = {
        "bare query": http(where, f"/bare?pk={pk}"),
        "bare INSERT": http(where, f"/bare-insert?pk={pk}"),
        "REST get_playbook": http(where, f"/api/v1/playbooks/{pk}"),
        "REST report_outcome": http(where, f"/api/v1/playbooks/{pk}/outcomes", body=report),
    }
    read = {"playbook_id": pk}
    for revision in REVISIONS:
        found |= {
            f"MCP {revision}, bare server as JSON": bare_call(where, revision, "/bare-json"),
            f"MCP {revision} get_playbook": tool_request(where, "get_playbook", read, revision),
            f"MCP {revision} report_outcome": tool_request(
                where, "report_outcome", read | report, revision
            ),
        }
        # By h11, as the SDK alone brings it, and by the parser that ours uses.
        found[f"MCP {revision}, bare server"] = bare_call(where, revision, "/bare-mcp")
        same = where | {"bare_port": where["bare_httptools_port"]}
        found[f"MCP {revision}, bare server by httptools"] = bare_call(same, revision, "/bare-mcp")
    return found


def bare_call(where: dict[str, Any], revision: str, path: str) -> bytes:
    """The call of a tool that does nothing, of a server of the SDK beside ours."""
    where = where | {"port": where["bare_port"]}
    has_session = revision == HANDSHAKE and path == "/bare-mcp"
    session = open_mcp_session(where, path) if has_session else ""
    params = {"name": "empty", "arguments": {}}
    return mcp_request(where, "tools/call", params, revision, path=path, session=session)


def list_requests(where: dict[str, Any]) -> dict[str, bytes]:
    """A playbook's outcomes as page, over REST, and as the bare query, at each size."""
    found = {}
    for count, pk in where["lists"].items():
        name = f"{int(count):,} outcomes"
        found[f"bare list, {name}"] = http(where, f"/bare-list?pk={pk}")
        found[f"REST list, {name}"] = http(where, f"/api/v1/playbooks/{pk}/outcomes?page_size=50")
        found[f"page, {name}"] = http(where, f"/playbooks/{pk}/outcomes", cookie=True)
    return found


def port_of(request: bytes) -> int:
    """The one that its Host header names."""
    return int(request.partition(b"Host: 127.0.0.1:")[2].partition(b"\r\n")[0])


async def one_client(request: bytes, until: float, taken: Timings) -> None:
    """One agent on one connection, call after call."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(request))
    while time.monotonic() < until:
        began = time.perf_counter()
        writer.write(request)
        status, body = await read_answer(reader)
        if status in {200, 201} and b'"isError":true' not in body:
            taken.seconds.append(time.perf_counter() - began)
        else:
            taken.errors += 1
    writer.close()


async def ask(request: bytes, clients: int, seconds: float) -> Timings:
    taken, until = Timings(span=seconds), time.monotonic() + seconds
    await asyncio.gather(*(one_client(request, until, taken) for _ in range(clients)))
    return taken


def measure(
    where: dict[str, Any], requests: dict[str, bytes], clients: int, seconds: float
) -> dict[str, dict[str, float]]:
    """Each request in turn, in ROUNDS rounds, so that a slow minute is everybody's.

    After each of them what waits is taken, as an evolution would: it never waits by the thousand.
    """
    if clients > 1:
        # In a session the SDK answers one of the requests that have the same id, and no other.
        requests = {n: each for n, each in requests.items() if b"Mcp-Session-Id" not in each}
    found = {name: Timings() for name in requests}
    for _ in range(ROUNDS):
        for name, request in requests.items():
            part = asyncio.run(ask(request, clients, seconds / ROUNDS))
            whole = found[name]
            whole.seconds += part.seconds
            whole.errors += part.errors
            whole.span += part.span
            asyncio.run(once(where, f"/settle?pk={where['playbook_id']}"))
    return {name: taken.figures() for name, taken in found.items()}
