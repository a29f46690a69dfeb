"""The app of management commands, templates and process start-up."""

import gc
import sys

from django.apps import AppConfig

from config.observability.telemetry import start_telemetry


class ConfigConfig(AppConfig):
    """Starts telemetry and re-enables the garbage collector once Django is ready."""

    name = "config"

    def ready(self) -> None:
        start_telemetry()
        # A thread that holds SQLite's write lock gives up the GIL with each statement. At Python's
        # 5 ms it held the lock for twice as long beside other requests.
        sys.setswitchinterval(0.0005)
        # A start allocates half a million objects that all stay. Traversing them took a fifth of
        # it, and later each full collection paused the server for a tenth of a second.
        gc.freeze()
        gc.enable()
