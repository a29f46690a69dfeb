"""The real server in a thread, and agents that speak to it over real HTTP.

Import the fixture `live_url` into a conftest; its database is a transactional one, because the
server reads on its own connections. `live_mcp(url, key)` is then one agent at that server.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import httpx2
import pytest
import uvicorn
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, Tool
from starlette.types import ASGIApp

from mcp_bridge.protocol.errors import ERROR_META_KEY

T = TypeVar("T")
STARTS_WITHIN = 60.0


class Agent:
    """Sync calls of the SDK's client; every call is a connection of its own."""

    def __init__(self, url: str, key: str, mode: str = "auto") -> None:
        self.url, self.mode = f"{url}/mcp", mode
        self.headers = {"Authorization": f"Bearer {key}"} if key else {}

    def run(self, work: Callable[[Client], Awaitable[T]]) -> T:
        """The result of `work` on a connected client."""

        async def connected() -> T:
            async with (
                httpx2.AsyncClient(headers=self.headers, timeout=30, trust_env=False) as http,
                Client(
                    streamable_http_client(self.url, http_client=http), mode=self.mode
                ) as client,
            ):
                return await work(client)

        try:
            return asyncio.run(connected())
        except BaseExceptionGroup as group:
            raise _first(group) from None

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        """The whole answer of a tool, failed ones included."""
        return self.run(lambda client: client.call_tool(tool, arguments))

    def ask(self, tool: str, **arguments: Any) -> Any:
        """The structured content of a call that has to succeed; lists unwrapped."""
        answer = self.call(tool, **arguments)
        assert not answer.is_error, text_of(answer)
        content = answer.structured_content or {}
        return content.get("result", content)

    def refused(self, tool: str, **arguments: Any) -> tuple[str, str]:
        """(code, text) of a call that has to fail."""
        answer = self.call(tool, **arguments)
        assert answer.is_error, answer.structured_content
        return (answer.meta or {})[ERROR_META_KEY]["code"], text_of(answer)

    def tools(self) -> dict[str, Tool]:
        listed = self.run(lambda client: client.list_tools())
        return {tool.name: tool for tool in listed.tools}


def live_mcp(url: str, key: str, mode: str = "auto") -> Agent:
    """An agent with this key at the server of `live_url`; mode as the SDK's Client takes it."""
    return Agent(url, key, mode)


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The failure itself: the SDK's task groups wrap it once each."""
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def text_of(answer: CallToolResult) -> str:
    return "\n".join(getattr(block, "text", "") for block in answer.content)


@contextlib.contextmanager
def serving(app: ASGIApp) -> Iterator[str]:
    """The address under which uvicorn serves `app` in a thread of this process."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, lifespan="on", timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    started = threading.Event()

    def run() -> None:
        asyncio.run(_serve(server, listener, started))

    thread = threading.Thread(target=run, name="live server")
    thread.start()
    try:
        assert started.wait(STARTS_WITHIN), "the server did not start"
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(STARTS_WITHIN)
        listener.close()
    assert not thread.is_alive(), "the server did not stop"


async def _serve(server: uvicorn.Server, listener: socket.socket, started: threading.Event) -> None:
    startup = server.startup

    async def announced(sockets: list[socket.socket] | None = None) -> None:
        await startup(sockets)
        started.set()

    server.startup = announced  # type: ignore[method-assign]  # uvicorn has no hook for "listening"
    await server.serve([listener])


@pytest.fixture
def live_url(transactional_db: None) -> Iterator[str]:
    """Pages, REST and /mcp of one process, as `make run` serves them."""
    from config.asgi import build_application  # noqa: PLC0415 - only tests that serve pay for it

    with serving(build_application()) as url:
        yield url
