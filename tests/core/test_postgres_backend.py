"""PostgreSQL: hot statements are prepared, and a pooled connection that has ended is not used."""

import select
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection
from psycopg_pool import ConnectionPool

from accounts.keys.authentication import principal_for_key
from accounts.models import User
from core.sql.postgres import base
from tests.factories import make_key

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="about PostgreSQL's backend"),
]


def prepared_statements() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements WHERE custom_plans = 0")
        return [text for (text,) in cursor.fetchall()]


def test_a_statement_that_runs_often_is_planned_once(alice: User) -> None:
    """Keys are looked up by a prepared statement; a queryset's values stay in its text."""
    token = make_key(alice)[1]
    for _ in range(3):
        principal_for_key(token)
        assert User.objects.filter(pk=alice.pk).exists()
    found = prepared_statements()
    assert sum("accounts_apikey" in text for text in found) == 1
    assert not any("accounts_user" in text and "accounts_apikey" not in text for text in found)


class Pooled(base.DatabaseWrapper):
    """A wrapper with a pool of its own; the tests' connections have none."""

    pool: Any = None


@pytest.fixture
def pooled(db: None) -> Iterator[Pooled]:
    wrapper = Pooled(connection.settings_dict, "pooled")
    params = wrapper.get_connection_params() | {"autocommit": True}
    with ConnectionPool(kwargs=params, min_size=1, max_size=2) as wrapper.pool:
        wrapper.pool.wait()
        yield wrapper


def test_a_connection_that_the_server_ended_is_replaced(pooled: Pooled) -> None:
    first = pooled.get_new_connection({})
    pid = first.info.backend_pid
    pooled.pool.putconn(first)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    second = pooled.get_new_connection({})
    try:
        assert second.info.backend_pid != pid
        assert second.execute("SELECT 1").fetchone() == (1,)
    finally:
        pooled.pool.putconn(second)


def test_an_idle_connection_is_not_asked(pooled: Pooled, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its use takes no round trip: the same one comes back, and nothing was executed."""
    first = pooled.get_new_connection({})
    pid = first.info.backend_pid
    pooled.pool.putconn(first)
    asked: list[Any] = []
    monkeypatch.setattr(psycopg.Connection, "execute", lambda *given, **_: asked.append(given))
    second = pooled.get_new_connection({})
    pooled.pool.putconn(second)
    assert (second.info.backend_pid, asked) == (pid, [])


def test_a_connection_that_was_only_told_something_stays(pooled: Pooled) -> None:
    first = pooled.get_new_connection({})
    first.execute("LISTEN something")
    pid = first.info.backend_pid
    pooled.pool.putconn(first)
    with psycopg.connect(**pooled.pool.kwargs) as other:
        other.execute("NOTIFY something")
    assert select.select([first], [], [], 10)[0]
    second = pooled.get_new_connection({})
    pooled.pool.putconn(second)
    assert second.info.backend_pid == pid
