"""/mcp in several processes that share nothing but the database; one import for all of them.

`python -m tests.harness.mcp_processes 3` prints three addresses, then serves until SIGTERM.
"""

import os
import signal
import socket
import sys

import django
import uvicorn
from django.conf import settings


def serve(listener: socket.socket) -> None:
    from config.asgi import build_mcp_application  # noqa: PLC0415 - needs the settings

    config = uvicorn.Config(
        build_mcp_application(), log_config=None, lifespan="on", timeout_graceful_shutdown=5
    )
    uvicorn.Server(config).run([listener])


def stop(children: list[int]) -> None:
    for child in children:
        os.kill(child, signal.SIGTERM)


def main(count: int) -> None:
    database = settings.DATABASES["default"]
    database["NAME"] = os.environ["ACE_TEST_DATABASE"]
    if "postgresql" in database["ENGINE"]:
        # As in production; the tests of this process itself go without.
        database["OPTIONS"]["pool"] = {"min_size": 1, "max_size": 12, "timeout": 10}
    django.setup()
    import config.asgi  # noqa: F401, PLC0415 - once, before the fork

    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    children = []
    for listener in listeners:
        child = os.fork()
        if child == 0:
            serve(listener)
            os._exit(0)
        children.append(child)
    signal.signal(signal.SIGTERM, lambda *_: stop(children))
    ports = [listener.getsockname()[1] for listener in listeners]
    print(*(f"http://127.0.0.1:{port}" for port in ports), flush=True)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
