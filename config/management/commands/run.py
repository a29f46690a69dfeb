"""`manage.py run`: the whole platform on one machine, under one supervisor."""

import socket
import sys
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from config.observability.healthcheck import connect_host
from config.supervisor.process import SupervisorConfig, exec_supervisor


class Command(BaseCommand):
    help = "Prepare the database, then run web, MCP and worker until Ctrl-C."
    requires_system_checks: list[str] = []  # migrate runs them

    def handle(self, *args: Any, **options: Any) -> None:
        require_free(settings.HOST, settings.PORT)
        self.prepare()
        name = settings.ALLOWED_HOSTS[0].lstrip(".*") or connect_host(settings.HOST)
        exec_supervisor(SupervisorConfig(commands(), settings.HOST, settings.PORT, name))

    def prepare(self) -> None:
        """Migrations are applied, starters loaded, a first login exists."""
        # Here one connection is enough, and a pool says only after 10 s that there is no server.
        connection.settings_dict["OPTIONS"].pop("pool", None)
        call_command("migrate", interactive=False, verbosity=0)
        if not settings.LOCAL:
            call_command("collectstatic", interactive=False, verbosity=0)
        call_command("load_starters", verbosity=0)
        call_command("bootstrap", stdout=self.stdout, stderr=self.stderr)
        # The supervisor needs no database.
        connection.close()


def commands() -> dict[str, list[str]]:
    """The command lines that make up a running platform."""
    web = ["-m", "uvicorn", "config.asgi:application", "--log-level", "warning"]
    web += ["--host", settings.HOST, "--port", str(settings.PORT)]
    # No access log: a query string may carry what is nobody's business. An open event stream would
    # hold the shutdown up for ever.
    web += ["--no-access-log", "--no-server-header", "--timeout-graceful-shutdown", "5"]
    manage = str(settings.BASE_DIR / "manage.py")
    return {"web": [sys.executable, *web], "worker": [sys.executable, manage, "run_worker"]}


def require_free(host: str, port: int) -> None:
    """Raise CommandError with a sentence when nothing can listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CommandError(
                f"Port {port} on {host} cannot be used ({error.strerror}). Stop what uses it, or "
                f"choose another: PORT={port % 65_535 + 1} make run"
            ) from None
