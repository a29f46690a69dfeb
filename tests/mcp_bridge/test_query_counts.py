"""The SQL statements of reading and reporting are pinned, whatever the playbook contains."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from accounts.keys.authentication import principal_for_key
from accounts.models import User
from core.security.scopes import Principal
from mcp_bridge.tools.definitions import TOOLS
from playbooks.models import Playbook
from tests.factories import make_key, make_outcome, make_playbook

TASK = {"task_description": "Make the build green", "outcome": "success"}


@pytest.fixture
def by(alice: User) -> Principal:
    token = make_key(alice)[1]
    principal_for_key(token)  # notes the use
    with CaptureQueriesContext(connection) as captured:
        by = principal_for_key(token)
    assert len(captured) == 1
    return by


def statements(by: Principal, name: str, **arguments: Any) -> list[str]:
    """What one call asks of the database, without the bounds of its transaction."""
    with CaptureQueriesContext(connection) as captured:
        TOOLS[name].call(by, arguments)
    return [q["sql"] for q in captured if "SAVEPOINT" not in q["sql"]]


def test_reading_costs_one_statement(by: Principal, playbook: Playbook) -> None:
    assert len(statements(by, "get_playbook", playbook_id=str(playbook.pk))) == 1


@pytest.mark.parametrize("query", ["", "nothing has this word"])
def test_a_list_reads_its_columns_for_its_own_rows_only(
    by: Principal, playbook: Playbook, query: str
) -> None:
    make_playbook(by.user, name="Second")
    asked = statements(by, "list_playbooks", limit=1, query=query)
    assert len(asked) == (3 if query else 2)
    assert ["bullet_count" in each for each in asked] == [False] * (len(asked) - 1) + [True]
    assert " IN (" in asked[-1], "by their ids"


def test_a_clone_reads_its_original_once(by: Principal, playbook: Playbook) -> None:
    found = statements(by, "clone_playbook", playbook_id=str(playbook.pk))
    assert sum(sql.startswith('SELECT "playbooks_playbook"."id"') for sql in found) == 1
    assert len(found) <= 18


@pytest.mark.parametrize("waiting", [1, 3])
def test_a_report_costs_what_is_pinned(
    by: Principal, playbook: Playbook, alice: User, waiting: int
) -> None:
    for _ in range(waiting):
        make_outcome(playbook, alice)
    found = statements(by, "report_outcome", playbook_id=str(playbook.pk), **TASK)
    # Find, lock, count the rate, insert, tally and how it stands then.
    assert len(found) == 5


@pytest.mark.parametrize("redis", ["", "redis://cache.example.org"])
def test_nobody_waits_for_a_lock_while_redis_counts(
    by: Principal, playbook: Playbook, settings: Settings, redis: str
) -> None:
    settings.REDIS_URL = redis  # the order only: these tests count in the database
    found = statements(by, "report_outcome", playbook_id=str(playbook.pk), **TASK)
    count = next(n for n, sql in enumerate(found) if "core_ratecounter" in sql)
    locks = [n for n, sql in enumerate(found) if sql.startswith('SELECT "playbooks_playbook"')]
    assert (count < locks[1]) == bool(redis)


def test_a_full_report_costs_three_look_ups_more(
    by: Principal, playbook: Playbook, alice: User
) -> None:
    make_outcome(playbook, alice)
    pk = {"playbook_id": str(playbook.pk)}
    read = TOOLS["get_playbook"].call(by, pk).structured_content or {}
    more = {"serving_id": read["serving_id"], "bullet_ids": ["str-00001"], "idempotency_key": "a"}
    assert len(statements(by, "report_outcome", **pk, **TASK, **more)) == 8


def test_a_report_reads_no_text_of_the_playbook(
    by: Principal, playbook: Playbook, alice: User
) -> None:
    read = TOOLS["get_playbook"].call(by, {"playbook_id": str(playbook.pk)})
    serving = (read.structured_content or {})["serving_id"]
    for more in ({}, {"serving_id": serving}):
        found = statements(by, "report_outcome", playbook_id=str(playbook.pk), **TASK, **more)
        assert not [sql for sql in found if '"playbooks_version"."text"' in sql]
