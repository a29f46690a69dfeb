"""The same operation through public peers and through us, over stdio by the same client.

To read: 20 KB of advice as one answer. To report: one more short observation, kept for later. What
each of them does for it differs, and is described beside the figures.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from benchmarks.mcp_load import percentile, server
from benchmarks.pythons import NoPython, environment_with, find_python, run

MEMORY = "@modelcontextprotocol/server-memory"
BASIC = "basic-memory==0.22.1"
ACE = "ace-framework[mcp]==0.13.0"
BULLETS = 130
ADVICE = [f"{'Read the failing test before the code. ' * 4}{n}" for n in range(BULLETS)]
Tool = tuple[str, dict[str, Any]]
# The number of a call keeps what is reported apart: a peer may drop what it has already.
Calls = dict[str, Callable[[int], Tool]]


@dataclass
class Peer:
    """How to reach one, what to do once, and its calls to read and to report."""

    name: str
    does: str
    command: list[str]
    calls: Calls
    before: list[Tool] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    url: str = ""
    """Of a server that runs already; else `command` is started for the client."""


def measure(calls: int, python: str = "") -> dict[str, dict[str, Any]]:
    """Milliseconds of the middle call for each peer and operation; `start` is its first answer.

    A peer that failed has its reason under `failed`, one that cannot run here under `missing`.
    """
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="ace-peers-") as name:
        for peer in ours():
            found[peer.name] = ask(peer, calls)
        for label, make in PEERS.items():
            try:
                peer = make(Path(name) / label, python)
            except (NoPython, subprocess.CalledProcessError) as reason:
                found[label] = {"missing": str(reason)}
            else:
                found[label] = ask(peer, calls)
    return found


def ours() -> Iterator[Peer]:
    does = "key, owner, rate limit; a report is a row in a durable transaction"
    with server(1, "") as where:
        pk = {"playbook_id": where["playbook_id"]}
        calls: Calls = {
            "read": lambda _: ("get_playbook", pk),
            "report": lambda n: (
                "report_outcome",
                pk | {"task_description": f"Make build {n} green", "outcome": "success"},
            ),
        }
        command = [sys.executable, "manage.py", "run_mcp"]
        key = {"ACE_API_KEY": where["token"]}
        yield Peer("ACE Platform", does, command, calls, environment=where["environment"] | key)
        url = f"http://127.0.0.1:{where['port']}/mcp"
        served = "the same over HTTP, from a server that runs already"
        yield Peer("ACE Platform, HTTP", served, [], calls, environment=key, url=url)


def memory(folder: Path, _python: str) -> Peer:
    if not shutil.which("npm"):
        raise NoPython("npm is not installed")
    run("npm", "install", "--silent", "--prefix", str(folder), MEMORY)
    entity = {"name": "Load", "entityType": "playbook", "observations": ADVICE}

    def add(number: int) -> Tool:
        more = {"entityName": "Load", "contents": [f"Make build {number} green: success"]}
        return "add_observations", {"observations": [more]}

    return Peer(
        "server-memory",
        "one JSON file, read and written whole; no key, no users, no limit, no transaction",
        [str(folder / "node_modules/.bin/mcp-server-memory")],
        {"read": lambda _: ("open_nodes", {"names": ["Load"]}), "report": add},
        before=[("create_entities", {"entities": [entity]})],
        environment={"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
    )


def basic_memory(folder: Path, python: str) -> Peer:
    programs = environment_with(BASIC, find_python(python), folder / "venv")
    note = {"title": "Load", "directory": "playbooks", "content": "\n".join(ADVICE)}
    where = {"identifier": "playbooks/load"}
    return Peer(
        "basic-memory",
        "a Markdown file and its SQLite index, here without vectors; no key, no users, no limit",
        [str(programs / "basic-memory"), "mcp"],
        {
            "read": lambda _: ("read_note", where),
            "report": lambda n: (
                "edit_note",
                where | {"operation": "append", "content": f"Make build {n} green: success"},
            ),
        },
        before=[("write_note", note)],
        # Vectors need a model from the internet, and make its writes dearer.
        environment={"HOME": str(folder), "BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false"},
    )


def ace_framework(folder: Path, python: str) -> Peer:
    programs = environment_with(ACE, find_python(python), folder / "venv")
    book = folder / "book.json"
    subprocess.run(
        [programs / "python", "-c", MAKE_BOOK, str(book)],
        input=json.dumps(ADVICE),
        text=True,
        check=True,
    )
    return Peer(
        "ace-framework",
        "from the process's memory; no key, no users, no limit. It has no report without a model: "
        "`ace.learn.feedback` calls one before it answers, so reading alone is compared",
        [str(programs / "ace-mcp")],
        {"read": lambda _: ("ace.skillbook.get", {"session_id": "load", "limit": 200})},
        before=[("ace.skillbook.load", {"session_id": "load", "path": str(book)})],
        environment={"HOME": str(folder)},
    )


MAKE_BOOK = """
import json, sys
from ace.core.skillbook import Skillbook
book = Skillbook()
for advice in json.load(sys.stdin):
    book.add_skill("harness", advice)
book.save_to_file(sys.argv[1])
"""
PEERS: dict[str, Callable[[Path, str], Peer]] = {
    "server-memory": memory,
    "basic-memory": basic_memory,
    "ace-framework": ace_framework,
}


def ask(peer: Peer, calls: int) -> dict[str, Any]:
    """The figures of one peer, or why there are none."""
    try:
        return {"does": peer.does} | asyncio.run(timings(peer, calls))
    except BaseExceptionGroup as group:  # as task groups of the client raise it
        return {"does": peer.does, "failed": str(leaf_of(group))[:300]}
    except RuntimeError as error:
        return {"does": peer.does, "failed": str(error)[:300]}


def leaf_of(error: BaseException) -> BaseException:
    return leaf_of(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


async def timings(peer: Peer, calls: int) -> dict[str, float]:
    """One call after the other on one connection."""
    async with connected(peer) as client:
        await client.list_tools()  # a first start may make files and tables
    began = time.perf_counter()
    async with connected(peer) as client:
        await client.list_tools()
        found = {"start": (time.perf_counter() - began) * 1000}
        for tool in peer.before:
            await call(client, tool)
        for name, tool_of in peer.calls.items():
            taken = [await timed(client, tool_of(number)) for number in range(calls)]
            found[name] = percentile(taken, 0.5)
        await reads_all(client, peer)
    return {name: round(value, 2) for name, value in found.items()}


@asynccontextmanager
async def connected(peer: Peer) -> AsyncIterator[Client]:
    keep = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment = keep | peer.environment
    if peer.url:
        headers = {"Authorization": f"Bearer {environment['ACE_API_KEY']}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False) as http,
            Client(streamable_http_client(peer.url, http_client=http)) as client,
        ):
            yield client
        return
    command, *arguments = peer.command
    parameters = StdioServerParameters(command=command, args=arguments, env=environment)
    with open(os.devnull, "w") as quiet:  # noqa: ASYNC230 - the null device does not block
        async with Client(stdio_client(parameters, errlog=quiet)) as client:
            yield client


async def reads_all(client: Client, peer: Peer) -> None:
    """Raises RuntimeError unless all of the advice was read: half of it would flatter."""
    text = await call(client, peer.calls["read"](0))
    if not all(advice in text for advice in ADVICE[1:]):
        raise RuntimeError("the advice was not read whole")


async def call(client: Client, tool: Tool) -> str:
    """The answer's text; RuntimeError for a failed one: a refusal is quick and would flatter."""
    result = await client.call_tool(*tool)
    text = "".join(getattr(part, "text", "") for part in result.content)
    if result.is_error:
        raise RuntimeError(f"{tool[0]}: {text}")
    return f"{text}{json.dumps(result.structured_content)}"


async def timed(client: Client, tool: Tool) -> float:
    began = time.perf_counter()
    await call(client, tool)
    return time.perf_counter() - began
