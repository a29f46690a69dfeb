"""`manage.py run_worker`: the queue's workers under a watchdog, and the sweeper."""

import signal
from threading import Event
from typing import Any

from django.core.management.base import BaseCommand

from evolution.worker.watchdog import watch


class Command(BaseCommand):
    help = "Run queue workers that carry out evolutions. Stops them all on SIGTERM or Ctrl-C."

    def handle(self, *args: Any, **options: Any) -> None:
        stopping = Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopping.set())
        watch(stopping)
