"""The load benchmark in its shortest form: it runs, and nothing fails."""

import asyncio

import pytest
from django.db import connection
from pytest_django import Settings

from accounts.models import User
from benchmarks.mcp_load import load, mcp_requests, row
from evolution.models import Outcome
from tests.factories import make_key, make_playbook

pytestmark = pytest.mark.skipif(connection.vendor != "sqlite", reason="no database changes this")


def test_agents_that_read_and_report_at_once_all_succeed(
    live_url: str, alice: User, settings: Settings
) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"report_outcome": "100000/h"}
    where = {
        "port": int(live_url.rpartition(":")[2]),
        "token": make_key(alice)[1],
        "playbook_id": str(make_playbook(alice).pk),
    }
    tally = asyncio.run(load(where, mcp_requests(where), 8, 1))
    assert tally.errors == 0
    assert len(tally.seconds["write"]) == Outcome.objects.count() > 0
    assert row("test", tally, 1).endswith("| 0 |")
