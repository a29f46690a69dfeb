"""The evolution app."""

from django.apps import AppConfig


class EvolutionConfig(AppConfig):
    name = "evolution"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from evolution.outcomes.playbook_hooks import set_hooks  # noqa: PLC0415 - needs the models

        set_hooks()
