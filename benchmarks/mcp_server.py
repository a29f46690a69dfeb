"""The server side of benchmarks.mcp_load: the agents' door, and the bare query beside it.

Run by that command, not by hand. Prints one line of JSON about where to call, serves until SIGTERM.
"""

import cProfile
import json
import os
import pstats
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import django
import uvicorn
from django.core.management import call_command
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

BULLETS = 130  # about 20 KB


def prepare() -> dict[str, str]:
    """Tables, a person, a playbook of 20 KB and a key."""
    from accounts.models import User  # noqa: PLC0415 - needs the settings
    from accounts.scopes import KEY_SCOPES, Principal  # noqa: PLC0415 - likewise
    from accounts.services import create_api_key  # noqa: PLC0415 - likewise
    from playbooks.services import import_playbook  # noqa: PLC0415 - likewise

    call_command("migrate", verbosity=0)
    # The temporary PostgreSQL serves several runs, each with a person of its own.
    email = f"load-{secrets.token_hex(4)}@example.org"
    user = User.objects.create_user(email, secrets.token_urlsafe(24))
    lines = [
        f"[str-{n:05}] helpful=0 harmful=0 :: {'Read the failing test before the code. ' * 4}{n}"
        for n in range(1, BULLETS + 1)
    ]
    text = "\n".join(["## STRATEGIES & INSIGHTS", *lines])
    playbook = import_playbook(by=Principal.of(user), name="Load", text=text)
    token = create_api_key(user=user, name="load", scopes=KEY_SCOPES)[1]
    return {"token": token, "playbook_id": str(playbook.pk)}


class Bare:
    """`/bare` reads the same row, `/bare-insert` writes one like a report's: nothing else."""

    def __init__(self, app: ASGIApp, playbook_id: str, begin: Callable[[], None]) -> None:
        self.app, self.playbook_id, self.begin = app, playbook_id, begin

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = {"/bare": self._read, "/bare-insert": self._insert}.get(scope.get("path", ""))
        if scope.get("path") == "/profile":
            self.begin()
            await PlainTextResponse("begun")(scope, receive, send)
            return
        if work is None:
            await self.app(scope, receive, send)
            return
        from mcp_bridge.db import threads  # noqa: PLC0415 - needs the settings

        await PlainTextResponse(await threads.run(work))(scope, receive, send)

    def _read(self) -> str:
        from playbooks.models import Playbook  # noqa: PLC0415 - needs the settings

        found = Playbook.objects.select_related("current_version").get(pk=self.playbook_id)
        assert found.current_version is not None
        return found.current_version.text

    def _insert(self) -> str:
        from evolution.models import Outcome  # noqa: PLC0415 - needs the settings
        from playbooks.models import Version  # noqa: PLC0415 - likewise

        version = Version.objects.only("pk").get(playbook_id=self.playbook_id, number=1)
        row = Outcome.objects.create(
            playbook_id=self.playbook_id,
            version=version,
            task_description="Make the build green",
            status="success",
        )
        return str(row.pk)


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
        from mcp_bridge import db  # noqa: PLC0415 - needs the settings

        original = db._with_connection
        db._with_connection = lambda work: self.run(work, original) if self.on else original(work)
        run()
        self.all[0].disable()
        first, *others = self.all
        pstats.Stats(first, *others).dump_stats(self.path)


def serve(listener: socket.socket, playbook_id: str, profile: str) -> None:
    from config.asgi import build_mcp_application  # noqa: PLC0415 - needs the settings

    profiled = Profiled(profile)
    app: Any = Bare(build_mcp_application(), playbook_id, profiled.begin)
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


def main(processes: int, profile: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    where = prepare()
    from django.db import connections  # noqa: PLC0415 - needs the settings

    import config.asgi  # noqa: F401, PLC0415 - once, before the fork

    connections.close_all()
    for one in connections.all():
        getattr(one, "close_pool", lambda: None)()
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    children = []
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            serve(listener, where["playbook_id"], profile)
            os._exit(0)
        children.append(child)
    signal.signal(signal.SIGTERM, lambda *_: stop(children))
    print(json.dumps(where | {"port": listener.getsockname()[1]}), flush=True)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), (sys.argv[2:] or [""])[0])
