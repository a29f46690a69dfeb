"""`manage.py run`: run the whole platform on one machine under a supervisor."""

import fcntl
import os
import socket
import sys
from tempfile import gettempdir
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from config.management.commands.run_worker import worker_commands
from config.supervisor import exec_supervisor


class Command(BaseCommand):
    help = "Prepare the database, then run web, MCP and worker until Ctrl-C."
    requires_system_checks: list[str] = []  # seconds that nobody wants at a start

    def handle(self, *args: Any, **options: Any) -> None:
        hold_port(settings.HOST, settings.PORT)
        call_command("migrate", interactive=False, verbosity=0)
        if not settings.LOCAL:
            call_command("collectstatic", interactive=False, verbosity=0)
        call_command("load_starters", verbosity=0)
        call_command("bootstrap", stdout=self.stdout, stderr=self.stderr)
        connection.close()
        exec_supervisor(commands(), settings.HOST, settings.PORT)


def commands() -> dict[str, list[str]]:
    """The command lines of the processes of a running platform."""
    web = ["-m", "uvicorn", "config.asgi:application", "--log-level", "warning"]
    web += ["--host", settings.HOST, "--port", str(settings.PORT)]
    # No access log: query strings may be private. Without the timeout an open event stream would
    # block the shutdown forever.
    web += ["--no-access-log", "--no-server-header", "--timeout-graceful-shutdown", "5"]
    return {"web": [sys.executable, *web], **worker_commands()}


def hold_port(host: str, port: int) -> int:
    """Lock the port for this process and the supervisor that it becomes; returns the lock's file.

    Two runs that start together would both find it free. Raises CommandError if it cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CommandError(
                f"Can't use port {port} on {host} ({error.strerror}). Stop what uses it, or "
                f"choose another: PORT={port % 65_535 + 1} make run"
            ) from None
    path = f"{gettempdir()}/ace-run-{os.getuid()}-{port}.lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise CommandError(f"Another run is starting on port {port}.") from None
    os.set_inheritable(lock, True)
    return lock
