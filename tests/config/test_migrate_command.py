"""Migrations may take longer than a request's statements."""

import pytest
from django.core.management import call_command
from django.db import connection

from config.management.commands.migrate import TIMEOUTS


@pytest.mark.django_db(transaction=True)
def test_migrate_runs_without_the_time_outs_of_requests() -> None:
    call_command("migrate", verbosity=0)
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        for name in TIMEOUTS:
            cursor.execute(f"SHOW {name}")
            assert cursor.fetchone() == ("0",)
    connection.close()
