"""`manage.py run_mcp`: serves MCP on stdio, or over HTTP without the pages."""

import gc
import os
from argparse import ArgumentParser
from typing import Any

import anyio
from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import DatabaseError

from accounts.keys.authentication import principal_for_key
from core.errors import NotAuthenticated
from core.sql.database_address import log_start

# A client that never ends its request must not delay a restart.
SHUTDOWN_SECONDS = 5


class Command(BaseCommand):
    help = "Serve MCP over stdio (key in ACE_API_KEY) or over streamable HTTP at /mcp."
    # Their warnings would be the only start-up output that an agent's user sees.
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        transports = ("stdio", "streamable-http")
        parser.add_argument("--transport", choices=transports, default="stdio")
        parser.add_argument("--host", default=settings.MCP_SERVER_HOST)
        parser.add_argument("--port", type=int, default=settings.MCP_SERVER_PORT)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["transport"] == "stdio":
            self._serve_stdio()
        else:
            _serve_http(options["host"], options["port"])

    def _serve_stdio(self) -> None:
        key = os.environ.get("ACE_API_KEY", "")
        problem = _problem_with(key)
        if problem:
            self.stderr.write(problem)
            raise SystemExit(1)
        log_start("MCP over stdio")
        # What it loads stays: collecting meanwhile took a quarter of the start.
        gc.disable()
        from mcp_bridge.server import build_server, serve_stdio  # noqa: PLC0415 - as above

        gc.freeze()
        gc.enable()
        anyio.run(serve_stdio, build_server(api_key=key))


def _problem_with(key: str) -> str:
    """Why this key cannot be used, as one sentence, or ""."""
    if not key:
        return "Set ACE_API_KEY to one of your API keys; create one on the page API keys."
    try:
        principal_for_key(key)
    except NotAuthenticated:
        return "ACE_API_KEY is not a valid API key; create one on the page API keys."
    except DatabaseError:
        return "The database cannot be read; check DATABASE_URL and run `manage.py migrate`."
    return ""


def _serve_http(host: str, port: int) -> None:
    import uvicorn  # noqa: PLC0415 - an import that stdio does not need would delay its start

    # By name: the app is assembled in config, which is a layer above this app.
    uvicorn.run(
        "config.asgi:build_mcp_application",
        factory=True,
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
