"""The evolution app; prepares a worker group before it forks."""

import os

from django.apps import AppConfig

from evolution.worker.prefork import WORKER_ID_VARIABLE, prepare_worker


class EvolutionConfig(AppConfig):
    name = "evolution"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from evolution.outcomes.playbook_hooks import set_hooks  # noqa: PLC0415 - needs the models

        set_hooks()
        if WORKER_ID_VARIABLE in os.environ:
            prepare_worker()
