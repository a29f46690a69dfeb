from django.apps import AppConfig

from config import collector
from config.telemetry import start_telemetry


class ConfigConfig(AppConfig):
    """Installed for its management commands, and to start what operators watch with."""

    name = "config"

    def ready(self) -> None:
        start_telemetry()
        collector.wake()
