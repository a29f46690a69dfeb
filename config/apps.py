"""The app of management commands, templates and process start-up."""

from django.apps import AppConfig

from config.management import gc_tuning
from config.observability.telemetry import start_telemetry


class ConfigConfig(AppConfig):
    """Starts telemetry and re-enables the garbage collector once Django is ready."""

    name = "config"

    def ready(self) -> None:
        start_telemetry()
        gc_tuning.freeze_and_enable_gc()
