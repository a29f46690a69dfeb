"""`manage.py run_worker`: a supervisor over the processes that carry out evolutions."""

import os
import signal
import sys
import time
from threading import Event, Thread
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from config.supervisor.process import SupervisorConfig, exec_supervisor
from config.supervisor.supervisor import PULSE_VARIABLE, SILENT_AFTER
from evolution.worker.runner import Worker

PULSE_SECONDS = 1.0


class Command(BaseCommand):
    help = "Run workers that carry out evolutions. Stops them all on SIGTERM or Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", help="be one of them: the supervisor sets it")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["name"] is None:
            exec_supervisor(SupervisorConfig(worker_commands()))
        stopping = Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        worker = Worker(options["name"], stopping=stopping, pulse=pulse(stopping))
        worker.run()
        if worker.running:
            # Their threads wait for a model, and the interpreter would wait for them.
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(0)


def worker_commands() -> dict[str, list[str]]:
    """The command line of each worker, with a name that outlives its process."""
    manage, own = str(settings.BASE_DIR / "manage.py"), uuid4().hex
    return {
        f"worker{number or ''}": [sys.executable, manage, "run_worker", "--name", f"{own}-{number}"]
        for number in range(settings.WORKER_PROCESSES)
    }


def pulse(stopping: Event) -> Any:
    """What a worker calls while it is well; sets `stopping` once the supervisor is gone.

    The supervisor hears of it every second, from a thread: a step of the worker may wait for the
    database for longer than a frozen process is left alone.
    """
    pipe = int(os.environ.get(PULSE_VARIABLE, -1))
    if pipe < 0:
        return lambda: None
    os.set_blocking(pipe, False)
    called = time.monotonic()

    def write() -> None:
        while time.monotonic() - called < SILENT_AFTER:
            try:
                os.write(pipe, b".")
            except BlockingIOError:
                pass  # the supervisor sleeps
            except BrokenPipeError:
                stopping.set()
                return
            time.sleep(PULSE_SECONDS)

    def call() -> None:
        nonlocal called
        called = time.monotonic()

    Thread(target=write, name="pulse", daemon=True).start()
    return call
