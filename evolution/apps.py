"""The evolution app."""

from django.apps import AppConfig


class EvolutionConfig(AppConfig):
    name = "evolution"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from evolution.evidence.trends import trends_of  # noqa: PLC0415 - needs the models
        from evolution.outcomes.playbook_hooks import set_hooks  # noqa: PLC0415 - likewise
        from playbooks.hooks import hooks  # noqa: PLC0415 - likewise

        set_hooks()
        hooks.trends = trends_of
