"""`python -m benchmarks.mcp_load`: 32 agents read and report at once; nothing may fail.

Four reads of a 20 KB playbook to one report, over MCP 2026-07-28 with an API key, on SQLite and on
a temporary PostgreSQL, with one and two web processes; and the same mix of the bare query and the
bare INSERT in the same processes, through the same threads. Then where the time of a read goes.
"""

import argparse
import asyncio
import json
import os
import pstats
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.harness.postgres import PostgresNotFound, temporary_cluster

LATEST, HANDSHAKE = REVISIONS = ("2026-07-28", "2025-11-25")
META = {
    "io.modelcontextprotocol/protocolVersion": LATEST,
    "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
# Every fifth call reports.
MIX = 5
# Steps that do not overlap: by the function that does one, or by whose code runs.
BY_FUNCTION = {
    "credential: look up the key": ("accounts/keys/authentication.py", "principal_for_key"),
    "tool: query of playbook and version": ("core/sql/querysets.py", "fetch"),
    "tool: advice and serving_id": ("playbooks/services/reading.py", "read_playbook"),
}
BY_CODE = {
    "SDK: envelope, dispatch, checks of requests and results": ("/mcp/", "/mcp_types/"),
    "HTTP: uvicorn, h11, starlette": ("/uvicorn/", "/h11/", "/starlette/"),
    "hops between event loop and threads": ("/asyncio/", "/concurrent/", "/anyio/", "threading.py"),
    "our checks, metrics, errors": ("/mcp_bridge/", "/config/"),
}


@dataclass
class Tally:
    """Seconds of the calls that succeeded, and how many did not."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: {"read": [], "write": []})
    errors: int = 0


def tool_request(
    where: dict[str, Any], tool: str, arguments: dict[str, Any], revision: str = LATEST
) -> bytes:
    return mcp_request(where, "tools/call", {"name": tool, "arguments": arguments}, revision)


def mcp_request(
    where: dict[str, Any],
    method: str,
    params: dict[str, Any],
    revision: str,
    *,
    path: str = "/mcp",
    session: str = "",
) -> bytes:
    """A request in the form of `revision`; one with a handshake names neither tool nor client."""
    headers = {
        "Host": f"127.0.0.1:{where['port']}",
        "Authorization": f"Bearer {where['token']}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    if revision == LATEST:
        params = params | {"_meta": META}
        headers |= {"Mcp-Method": method, "Mcp-Name": params["name"]}
    headers |= {"MCP-Protocol-Version": revision} if method != "initialize" else {}
    headers |= {"Mcp-Session-Id": session} if session else {}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    lines = [
        f"{name}: {value}" for name, value in (headers | {"Content-Length": len(body)}).items()
    ]
    return "\r\n".join([f"POST {path} HTTP/1.1", *lines, "", ""]).encode() + body


def open_mcp_session(where: dict[str, Any], path: str) -> str:
    """The id of a session by the handshake's revision."""
    hello = {
        "protocolVersion": HANDSHAKE,
        "capabilities": {},
        "clientInfo": {"name": "load", "version": "1"},
    }
    request = mcp_request(where, "initialize", hello, HANDSHAKE, path=path)
    with socket.create_connection(("127.0.0.1", where["port"])) as connected:
        connected.sendall(request)
        head = connected.recv(65536).decode("latin-1").lower()
    return next(x.split(": ")[1] for x in head.splitlines() if x.startswith("mcp-session-id"))


def mcp_requests(where: dict[str, Any]) -> dict[str, bytes]:
    pk = {"playbook_id": where["playbook_id"]}
    report = {"task_description": "Make the build green", "outcome": "success"}
    return {
        "read": tool_request(where, "get_playbook", pk),
        "write": tool_request(where, "report_outcome", pk | report),
    }


def bare_requests(where: dict[str, Any]) -> dict[str, bytes]:
    host = f"Host: 127.0.0.1:{where['port']}\r\n\r\n"
    paths = {"read": "/bare", "write": "/bare-insert"}
    pk = where["playbook_id"]
    return {kind: f"GET {path}?pk={pk} HTTP/1.1\r\n{host}".encode() for kind, path in paths.items()}


async def one_client(
    where: dict[str, Any], requests: dict[str, bytes], until: float, tally: Tally, first: int
) -> None:
    """One agent on one connection, call after call."""
    address = where.get("host", "127.0.0.1")
    reader, writer = await asyncio.open_connection(address, where["port"])
    number = first
    while time.monotonic() < until:
        kind = "write" if number % MIX == 0 else "read"
        number += 1
        began = time.perf_counter()
        writer.write(requests[kind])
        status, body = await read_answer(reader)
        if status == 200 and b'"isError":true' not in body:
            tally.seconds[kind].append(time.perf_counter() - began)
        else:
            tally.errors += 1
    writer.close()


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body, of a length that the head says or in chunks."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    status, lines = int(head.split()[1]), head.splitlines()
    for line in lines:
        if line.startswith("content-length:"):
            return status, await reader.readexactly(int(line.split(":")[1]))
    body = b""
    while length := int(await reader.readuntil(b"\r\n"), 16):
        body += (await reader.readexactly(length + 2))[:-2]
    await reader.readexactly(2)
    return status, body


async def once(where: dict[str, Any], path: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", where["port"])
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    await read_answer(reader)
    writer.close()


async def load(
    where: dict[str, Any], requests: dict[str, bytes], clients: int, seconds: float
) -> Tally:
    tally, until = Tally(), time.monotonic() + seconds
    await asyncio.gather(
        *(one_client(where, requests, until, tally, number) for number in range(clients))
    )
    return tally


def environment_of(folder: str, database_url: str) -> dict[str, str]:
    """The settings of a benchmarked server: limits out of the way."""
    keep = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return keep | {
        "ACE_DATA_DIR": folder, "ACE_LOCAL": "true", "DATABASE_URL": database_url,
        "RATE_LIMITS": "requests=100000000/m,report_outcome=100000000/h",
        "EVOLUTION_OUTCOME_THRESHOLD": "100000000", "EVOLUTION_TIME_THRESHOLD_HOURS": "100000",
        "LOG_LEVEL": "error", "DJANGO_SETTINGS_MODULE": "config.settings.base",
    }  # fmt: skip


@contextmanager
def server(
    processes: int, database_url: str, profile: str = "", lists: Sequence[int] = ()
) -> Iterator[dict[str, Any]]:
    """A fresh platform with limits out of the way; where to call it."""
    with tempfile.TemporaryDirectory(prefix="ace-load-") as folder:
        environment = environment_of(folder, database_url)
        given = json.dumps({"processes": processes, "lists": list(lists), "profile": profile})
        command = [sys.executable, "-m", "benchmarks.server", given]
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        with child.stdout:
            try:
                where = json.loads(child.stdout.readline())
                yield where | {"environment": environment, "processes": processes}
            finally:
                child.terminate()
                child.wait(30)


def percentile(values: list[float], share: float) -> float:
    """In milliseconds; 0 where nothing was measured."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000 if ordered else 0.0


def row(name: str, tally: Tally, seconds: float) -> str:
    reads, writes = tally.seconds["read"], tally.seconds["write"]
    figures = [f"{(len(reads) + len(writes)) / seconds:.0f}"]
    for values in (reads, writes):
        figures += [f"{percentile(values, share):.0f}" for share in (0.5, 0.99)]
    return f"| {name} | {' | '.join(figures)} | {tally.errors} |"


def measure(name: str, database_url: str, options: argparse.Namespace) -> int:
    """Print two lines for each number of processes; how many calls failed."""
    errors = 0
    for processes in options.processes:
        with server(processes, database_url) as where:
            asyncio.run(load(where, mcp_requests(where), options.clients, 1))  # warm
            for what, requests in {"MCP": mcp_requests, "bare": bare_requests}.items():
                tally = asyncio.run(load(where, requests(where), options.clients, options.seconds))
                label = f"{name}, {processes} process{'es' if processes > 1 else ''}, {what}"
                print(row(label, tally, options.seconds), flush=True)
                errors += tally.errors
    return errors


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--database", choices=("sqlite", "postgres", "both"), default="both")
    return parser.parse_args()


def main() -> int:
    options, errors = parse(), 0
    print("| | calls/s | read p50 ms | p99 | report p50 ms | p99 | errors |")
    print("|---|---|---|---|---|---|---|")
    if options.database != "postgres":
        errors += measure("SQLite", "", options)
    if options.database != "sqlite":
        try:
            with temporary_cluster() as url:
                errors += measure("PostgreSQL", url, options)
        except PostgresNotFound as error:
            print(f"PostgreSQL was not measured: {error}.")
    print_profile()
    return 1 if errors else 0


def print_profile() -> None:
    """The shares of one agent's reads, one after the other, on SQLite."""
    with tempfile.TemporaryDirectory(prefix="ace-profile-") as folder:
        path = f"{folder}/profile"
        with server(1, "", path) as where:
            requests = dict.fromkeys(("read", "write"), mcp_requests(where)["read"])
            asyncio.run(load(where, requests, 1, 2))
            asyncio.run(once(where, "/profile"))
            tally = asyncio.run(load(where, requests, 1, 15))
        calls = len(tally.seconds["read"]) + len(tally.seconds["write"])
        print(f"\nWhere the time of a read goes, under a profiler ({calls} calls):\n")
        for share, step in sorted(shares(pstats.Stats(path)), reverse=True):
            print(f"- {share:.0%} {step}")


def shares(stats: pstats.Stats) -> Iterator[tuple[float, str]]:
    """Of all CPU time; what is left is JSON, pydantic and Django around the queries."""
    rows: dict[Any, Any] = stats.stats  # type: ignore[attr-defined]  # documented, not in typeshed
    total = sum(own for _calls, _primitive, own, _through, _callers in rows.values())
    for step, (file, function) in BY_FUNCTION.items():
        spent = [
            v[3] for (path, _, name), v in rows.items() if path.endswith(file) and name == function
        ]
        assert spent, f"{function} was not met: mend the list of steps"
        yield sum(spent) / total, step
    for step, parts in BY_CODE.items():
        own = (v[2] for (path, _, _), v in rows.items() if any(part in path for part in parts))
        yield sum(own) / total, step


if __name__ == "__main__":
    sys.exit(main())
