"""The server side of the benchmarks: the platform, and the bare queries beside it.

Run by those commands, not by hand. Prints one line of JSON about where to call, serves until
SIGTERM.
"""

import cProfile
import json
import os
import pstats
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Literal
from urllib.parse import parse_qs

import django
import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send


def bare_mcp(path: str, *, is_lean: bool) -> Any:
    """The SDK's own server with a tool that does nothing, for everybody: what MCP costs alone."""
    server = MCPServer("bare", log_level="ERROR")

    @server.tool()
    def empty() -> str:
        """Do nothing."""
        return "Done."

    return server.streamable_http_app(
        streamable_http_path=path, stateless_http=is_lean, json_response=is_lean
    )


def bare_servers() -> Starlette:
    """Both of them; each process of these serves nothing else."""
    apps = [bare_mcp("/bare-mcp", is_lean=False), bare_mcp("/bare-json", is_lean=True)]

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for app in apps:
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    return Starlette(routes=[route for app in apps for route in app.routes], lifespan=lifespan)


class Bare:
    """`/bare…`: the query that an operation cannot do without, on the same threads; no more."""

    def __init__(self, app: ASGIApp, begin: Callable[[], None]) -> None:
        from benchmarks import rows  # noqa: PLC0415 - needs the settings
        from mcp_bridge.protocol.db_threads import threads  # noqa: PLC0415 - likewise

        self.app, self.begin, self.run = app, begin, threads.run
        self.works = {
            "/bare": rows.read_bare,
            "/bare-insert": rows.insert_bare,
            "/bare-list": rows.list_bare,
            "/settle": rows.settle,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if path == "/profile":
            self.begin()
            await PlainTextResponse("begun")(scope, receive, send)
        elif path in self.works:
            pk = parse_qs(scope["query_string"].decode())["pk"][0]
            text = await self.run(lambda: self.works[path](pk))
            await PlainTextResponse(text)(scope, receive, send)
        else:
            await self.app(scope, receive, send)


class Profiled:
    """Profiles of the event loop and of each database thread, together in one file."""

    def __init__(self, path: str) -> None:
        self.path, self.local = path, threading.local()
        self.on, self.all = False, [self._new()]

    def begin(self) -> None:
        """From now on; called on the event loop, once the first calls have loaded everything."""
        self.on = True
        self.all[0].enable()

    def _new(self) -> cProfile.Profile:
        # The CPU of the thread itself: others on the machine do not count.
        return cProfile.Profile(time.thread_time)

    def run(self, work: Callable[[], Any], original: Callable[[Any], Any]) -> Any:
        """What the database threads run in place of `original`."""
        if not hasattr(self.local, "profile"):
            self.local.profile = self._new()
            self.all.append(self.local.profile)
        return self.local.profile.runcall(original, work)

    def serve(self, run: Callable[[], None]) -> None:
        from mcp_bridge.protocol import db_threads  # noqa: PLC0415 - needs the settings

        original = db_threads._with_connection
        db_threads._with_connection = lambda work: (
            self.run(work, original) if self.on else original(work)
        )
        run()
        self.all[0].disable()
        first, *others = self.all
        pstats.Stats(first, *others).dump_stats(self.path)


def listen(host: str) -> socket.socket:
    listener = socket.create_server((host, 0), backlog=256)
    # asyncio sets it only on sockets that say their protocol; without it every answer waits 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def serve_bare(listener: socket.socket, parser: Literal["h11", "httptools"]) -> None:
    config = uvicorn.Config(bare_servers(), http=parser, log_config=None, access_log=False)
    uvicorn.Server(config).run([listener])


def serve(listener: socket.socket, profile: str) -> None:
    from config.asgi import build_application  # noqa: PLC0415 - needs the settings

    profiled = Profiled(profile)
    app: Any = Bare(build_application(), profiled.begin)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(config)
    # uvicorn repeats the signal once it has stopped; the profile is still to be written.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if profile:
        profiled.serve(lambda: server.run([listener]))
    else:
        server.run([listener])


def stop(children: list[int]) -> None:
    for child in children:
        os.kill(child, signal.SIGTERM)


def main(processes: int, lists: list[int], profile: str, host: str) -> None:
    """Serve with so many processes; `lists` are the outcomes of further playbooks."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    django.setup()
    from django.db import connections  # noqa: PLC0415 - needs the settings

    import config.asgi  # noqa: F401, PLC0415 - once, before the fork
    from benchmarks import rows  # noqa: PLC0415 - likewise

    where = rows.prepare(lists)

    connections.close_all()
    for one in connections.all():
        getattr(one, "close_pool", lambda: None)()
    listener, bare, lean = listen(host), listen(host), listen(host)
    works: list[Callable[[], None]] = [
        *([lambda: serve(listener, profile)] * processes),
        lambda: serve_bare(bare, "h11"),
        lambda: serve_bare(lean, "httptools"),
    ]
    children = []
    for work in works:
        child = os.fork()
        if child == 0:
            work()
            os._exit(0)
        children.append(child)
    signal.signal(signal.SIGTERM, lambda *_: stop(children))
    sockets = {"port": listener, "bare_port": bare, "bare_httptools_port": lean}
    ports = {name: each.getsockname()[1] for name, each in sockets.items()}
    print(json.dumps(where | ports), flush=True)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    host = given.get("host", "127.0.0.1")
    main(given["processes"], given.get("lists", []), given.get("profile", ""), host)
