"""`manage.py run_worker`: a supervisor over the process that carries out evolutions."""

import os
import signal
import sys
import time
from threading import Event
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from config.supervisor import SILENT_AFTER, exec_supervisor, start_pulse
from core.sql.database_address import log_start
from evolution.worker.runner import Worker


class Command(BaseCommand):
    help = "Run an evolution worker until SIGTERM or Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--name", help="internal: run the worker itself (set by the supervisor)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["name"] is None:
            exec_supervisor(worker_commands())
        stopping = Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        worker = Worker(options["name"], stopping=stopping)
        start_pulse(
            is_well=lambda: time.monotonic() - worker.stepped_at < SILENT_AFTER,
            on_orphaned=stopping.set,
        )
        log_start("worker")
        worker.run()
        if worker.running:
            # Their threads wait for a model, and the interpreter would wait for them.
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(0)


def worker_commands() -> dict[str, list[str]]:
    """The command line of the worker, with a name that outlives its process."""
    manage = str(settings.BASE_DIR / "manage.py")
    return {"worker": [sys.executable, manage, "run_worker", "--name", uuid4().hex]}
