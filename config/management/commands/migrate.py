"""`manage.py migrate` without the statement time-outs of requests."""

from typing import Any

from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from config.admin_site.roles import load_roles
from core.sql.database_address import database_address

TIMEOUTS = ("idle_in_transaction_session_timeout", "statement_timeout")
WITH_ALL_MIGRATIONS = "b3d6bac"
"""The last commit that has the migrations before they were squashed."""


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
