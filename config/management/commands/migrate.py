"""`manage.py migrate` without the statement time-outs of requests, and four times as fast."""

from typing import Any

from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ProjectState
from django.db.models import Model
from django.db.models.utils import make_model_tuple

from config.admin_site.roles import load_roles
from core.sql.database_address import database_address

TIMEOUTS = ("idle_in_transaction_session_timeout", "statement_timeout")
WITH_ALL_MIGRATIONS = "b3d6bac"
"""The last commit that has the migrations before they were squashed."""


class ForwardState(ProjectState):
    """Builds again only the models that name a changed one, directly or not.

    Django builds everything related to it by any path with each step, 4,100 models for an empty
    database instead of 590: three quarters of the time.
    """

    def _find_reload_model(self, app_label: str, model_name: str, delay: bool = False) -> Any:
        found, new = set(), {(app_label, model_name)}
        while new:
            found.add(key := new.pop())
            if model := self.apps.all_models[key[0]].get(key[1]):
                new |= {make_model_tuple(other) for other in models_naming(model)} - found
        return found


def models_naming(model: type[Model]) -> set[Any]:
    """Those that inherit from it, or have a relation to it or through it."""
    fields = model._meta.get_fields(include_hidden=True)
    back = {field.related_model for field in fields if field.auto_created and not field.concrete}
    through = {
        other
        for other in model._meta.apps.get_models()
        if any(field.remote_field.through is model for field in other._meta.local_many_to_many)
    }
    return {*model.__subclasses__()} | back | through


class Executor(MigrationExecutor):
    """Django's own, with such a state for migrations forwards."""

    def _migrate_all_forwards(self, state: ProjectState, *args: Any, **options: Any) -> Any:
        # Without its rendered models, which look relations up in the registry they came from.
        forward = ForwardState(state.models, state.real_apps)
        return super()._migrate_all_forwards(forward, *args, **options)  # type: ignore[misc]  # not in the stubs


migrate.MigrationExecutor = Executor  # type: ignore[attr-defined]  # no hook


class Command(migrate.Command):
    """Django's own, without time-outs."""

    help = "Create and update the database tables."

    def handle(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        if options["verbosity"]:
            connection.ensure_connection()  # else its error would come second
            self.stderr.write(f"Migrating {database_address()}.")
        lift_timeouts(connection)
        refuse_old_history(connection)
        super().handle(*args, **options)
        if not options["app_label"] and not options["plan"] and not options["check_unapplied"]:
            load_roles()


def lift_timeouts(connection: BaseDatabaseWrapper) -> None:
    """Indexing a large table, or hashing on a busy host, takes longer than a request may."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            for name in TIMEOUTS:
                cursor.execute(f"SET {name} = 0")


def refuse_old_history(connection: BaseDatabaseWrapper) -> None:
    """Raise CommandError if only some of the migrations that a squashed one replaces were applied.

    Their files are gone; Django would leave the squashed one out and call the rest up to date.
    """
    on_disk = MigrationLoader(None).disk_migrations
    applied = MigrationRecorder(connection).applied_migrations()
    for (app, _), migration in on_disk.items():
        gone = [name for name in migration.replaces if name not in on_disk]
        count = sum(name in applied for name in gone)
        if 0 < count < len(gone):
            raise CommandError(
                f"This database is too old for this release: it has {count} of {len(gone)} "
                f"migrations of {app}. Check out {WITH_ALL_MIGRATIONS} and run its "
                "`manage.py migrate`, then come back to this release. Nothing was changed."
            )
