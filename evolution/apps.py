import os

from django.apps import AppConfig

WORKER_VARIABLE = "ACE_WORKER_ID"
"""Set by `manage.py run_worker` for the group that it watches."""


class EvolutionConfig(AppConfig):
    name = "evolution"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        if WORKER_VARIABLE in os.environ:
            from evolution.worker.group import make_ready  # noqa: PLC0415 - needs the models

            make_ready()
