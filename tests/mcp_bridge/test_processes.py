"""Three web processes that share nothing but the database; a new connection for every call."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice

import httpx2
import pytest
from django.conf import settings
from django.db import connection

from accounts.models import User
from playbooks.models import Playbook
from tests.factories import make_key
from tests.harness.mcp_requests import tool
from tests.harness.raw_mcp import call_rpc
from tests.mcp_bridge.test_stdio import environment

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(
        connection.vendor == "sqlite", reason="counts and kills connections of PostgreSQL"
    ),
]
PROCESSES = 3
# psycopg's pool of each; eight threads use it.
MOST_CONNECTIONS = PROCESSES * 12


@pytest.fixture
def urls(transactional_db: None) -> Iterator[list[str]]:
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.harness.mcp_processes", str(PROCESSES)],
        env=environment(""), cwd=settings.BASE_DIR, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    with server.stdout:
        try:
            yield server.stdout.readline().split()
        finally:
            server.terminate()
            assert server.wait(20) == 0


def call_all(urls: list[str], key: str, playbook: Playbook, times: int) -> int:
    """How many of so many calls, spread over the processes, gave the playbook."""

    def succeeds(url: str) -> bool:
        try:
            answer = call_rpc(url, key, *tool("get_playbook", playbook_id=str(playbook.pk)))
        except httpx2.HTTPError:
            return False
        result = answer.get("result", {})
        return bool(result.get("structuredContent", {}).get("id") == str(playbook.pk))

    with ThreadPoolExecutor(8) as pool:
        return sum(pool.map(succeeds, islice(cycle(urls), times)))


def backends() -> list[int]:
    """The server's side of every connection to our database but this test's own."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return [row[0] for row in cursor.fetchall()]


def test_three_hundred_of_three_hundred_calls_succeed_on_few_connections(
    urls: list[str], alice: User, playbook: Playbook
) -> None:
    key = make_key(alice)[1]
    assert call_all(urls, key, playbook, 300) == 300
    assert len(backends()) <= MOST_CONNECTIONS


def test_calls_succeed_after_killed_connections(
    urls: list[str], alice: User, playbook: Playbook
) -> None:
    key = make_key(alice)[1]
    assert call_all(urls, key, playbook, 30) == 30
    with connection.cursor() as cursor:
        for backend in backends():
            cursor.execute("SELECT pg_terminate_backend(%s)", [backend])
    assert call_all(urls, key, playbook, 30) == 30
