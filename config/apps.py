from django.apps import AppConfig

from config.management import gc_tuning
from config.observability.telemetry import start_telemetry


class ConfigConfig(AppConfig):
    """Installed for its management commands, and to start what operators watch with."""

    name = "config"

    def ready(self) -> None:
        start_telemetry()
        gc_tuning.freeze_and_enable_gc()
