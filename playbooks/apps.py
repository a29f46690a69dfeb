"""The app of playbooks; it gives accounts the names of playbooks."""

from django.apps import AppConfig

from accounts.hooks import hooks


class PlaybooksConfig(AppConfig):
    name = "playbooks"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from playbooks.models import Playbook  # noqa: PLC0415 - needs the models

        hooks.playbook_names = Playbook.objects.names_for
