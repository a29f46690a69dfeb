"""Migrations may take longer than a request's statements."""

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from config.management.commands.migrate import TIMEOUTS, refuse_old_history


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("command", ["migrate", "bootstrap"])
def test_a_release_runs_without_the_time_outs_of_requests(command: str) -> None:
    call_command(command, verbosity=0)
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        for name in TIMEOUTS:
            cursor.execute(f"SHOW {name}")
            assert cursor.fetchone() == ("0",)
    connection.close()


@pytest.mark.django_db
def test_a_database_older_than_the_squashed_migrations_is_refused_and_left_alone() -> None:
    (squashed,) = (
        migration
        for (app, _), migration in MigrationLoader(None).disk_migrations.items()
        if app == "evolution" and migration.replaces
    )
    history = MigrationRecorder.Migration.objects.filter(app="evolution")
    history.all().delete()
    for _, name in squashed.replaces[:11]:
        history.create(app="evolution", name=name)
    with pytest.raises(CommandError, match=r"it has 11 of 18 migrations of evolution. Check out"):
        call_command("migrate", verbosity=0)
    assert history.count() == 11
    for _, name in squashed.replaces[11:]:
        history.create(app="evolution", name=name)
    refuse_old_history(connection)
