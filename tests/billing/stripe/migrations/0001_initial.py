"""dj-stripe's tables as its models are now, in one step instead of its own 70 s of migrations.

`tests.billing.stripe.settings_one_step_migrations` points MIGRATION_MODULES here.
"""

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ModelState


def in_app() -> Iterable[type[models.Model]]:
    return apps.get_app_config("djstripe").get_models()


class CreateAll(Operation):
    reversible = False

    def state_forwards(self, app_label: str, state: Any) -> None:
        for model in in_app():
            state.models[app_label, model._meta.model_name] = ModelState.from_model(model)

    def database_forwards(self, app_label: str, schema_editor: Any, *states: Any) -> None:
        for model in in_app():
            schema_editor.create_model(model)


class Migration(migrations.Migration):
    initial = True
    dependencies = [migrations.swappable_dependency(settings.AUTH_USER_MODEL)]
    operations = [CreateAll()]
