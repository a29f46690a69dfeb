"""The same operation through a public peer and through us, over stdio by the same client.

The peer is `@modelcontextprotocol/server-memory` from npm: a graph in one JSON file. To read and to
report, it opens a node with 20 KB of observations, and adds one observation. (`basic-memory` and
`ace-framework[mcp]` want Python 3.12; they are measured where `python3.12` is found.)
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from benchmarks.mcp_load import percentile, server

MEMORY = "@modelcontextprotocol/server-memory"
BASIC = "basic-memory==0.22.1"
BULLETS = 130
ADVICE = [f"{'Read the failing test before the code. ' * 4}{n}" for n in range(BULLETS)]
Calls = dict[str, tuple[str, dict[str, Any]]]


@dataclass
class Peer:
    """How to start one, what to do once, and its calls to read and to report."""

    name: str
    command: list[str]
    calls: Calls
    before: Calls = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


def measure(calls: int) -> dict[str, dict[str, float]]:
    """Milliseconds of the middle call for each peer and operation; `start` is its first answer."""
    with tempfile.TemporaryDirectory(prefix="ace-peers-") as folder:
        return {peer.name: asyncio.run(ask(peer, calls)) for peer in peers(Path(folder))}


def peers(folder: Path) -> Iterator[Peer]:
    yield from ours()
    if shutil.which("npm"):
        yield memory(folder)
    if shutil.which("uv") and does_run("python3.12"):
        yield basic_memory(folder)


def ours() -> Iterator[Peer]:
    with server(1, "") as where:
        pk = {"playbook_id": where["playbook_id"]}
        report = {"task_description": "Make the build green", "outcome": "success"}
        yield Peer(
            "ACE Platform",
            [sys.executable, "manage.py", "run_mcp"],
            {"read": ("get_playbook", pk), "report": ("report_outcome", pk | report)},
            environment=where["environment"] | {"ACE_API_KEY": where["token"]},
        )


def memory(folder: Path) -> Peer:
    run("npm", "install", "--silent", "--prefix", str(folder), MEMORY)
    entity = {"name": "Load", "entityType": "playbook", "observations": ADVICE}
    more = {"entityName": "Load", "contents": ["Make the build green: success"]}
    return Peer(
        "server-memory",
        [str(folder / "node_modules/.bin/mcp-server-memory")],
        {
            "read": ("open_nodes", {"names": ["Load"]}),
            "report": ("add_observations", {"observations": [more]}),
        },
        before={"fill": ("create_entities", {"entities": [entity]})},
        environment={"MEMORY_FILE_PATH": str(folder / "memory.jsonl")},
    )


def basic_memory(folder: Path) -> Peer:
    venv = folder / "venv"
    run("uv", "venv", "-q", "-p", "python3.12", str(venv))
    python = ["--python", str(venv / "bin/python")]
    run("uv", "pip", "install", "-q", *python, BASIC)
    note = {"title": "Load", "directory": "playbooks", "content": "\n".join(ADVICE)}
    more = {"identifier": "playbooks/load", "operation": "append", "content": "success"}
    return Peer(
        "basic-memory",
        [str(venv / "bin/basic-memory"), "mcp"],
        {
            "read": ("read_note", {"identifier": "playbooks/load"}),
            "report": ("edit_note", more),
        },
        before={"fill": ("write_note", note)},
        environment={"HOME": str(folder)},
    )


def does_run(python: str) -> bool:
    """A shim of that name may stand for nothing."""
    return bool(shutil.which(python)) and not subprocess.call([python, "-c", ""], stderr=-3)


def run(*command: str) -> None:
    subprocess.run(command, check=True)


async def ask(peer: Peer, calls: int) -> dict[str, float]:
    """One call after the other on one connection."""
    keep = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    parameters = StdioServerParameters(
        command=peer.command[0], args=peer.command[1:], env=keep | peer.environment
    )
    began = time.perf_counter()
    with open(os.devnull, "w") as quiet:  # noqa: ASYNC230 - the null device does not block
        async with Client(stdio_client(parameters, errlog=quiet)) as client:
            await client.list_tools()
            found = {"start": (time.perf_counter() - began) * 1000}
            for tool, arguments in peer.before.values():
                await call(client, tool, arguments)
            for name, (tool, arguments) in peer.calls.items():
                taken = [await timed(lambda: call(client, tool, arguments)) for _ in range(calls)]  # noqa: B023 - called at once
                found[name] = percentile(taken, 0.5)
    return {name: round(value, 2) for name, value in found.items()}


async def call(client: Client, tool: str, arguments: dict[str, Any]) -> None:
    """Raises RuntimeError for a failed result: a refusal is quick and would flatter."""
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise RuntimeError(f"{tool}: {result.content}")


async def timed(work: Callable[[], Awaitable[None]]) -> float:
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began
