"""`manage.py migrate` without the statement time-outs of requests."""

from typing import Any

from django.core.management.commands import migrate
from django.db import connections

from config.admin_site.roles import load_roles
from core.sql.database_address import database_address

TIMEOUTS = ("idle_in_transaction_session_timeout", "statement_timeout")


class Command(migrate.Command):
    """Django's own, without time-outs: indexing a large table takes longer than a request may."""

    help = "Create and update the database tables."

    def handle(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        if options["verbosity"]:
            connection.ensure_connection()  # else its error would come second
            self.stderr.write(f"Migrating {database_address()}.")
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                for name in TIMEOUTS:
                    cursor.execute(f"SET {name} = 0")
        super().handle(*args, **options)
        if not options["app_label"] and not options["plan"] and not options["check_unapplied"]:
            load_roles()
