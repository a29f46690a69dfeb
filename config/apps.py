from django.apps import AppConfig


class ConfigConfig(AppConfig):
    """Installed for its management commands: run, bootstrap."""

    name = "config"
