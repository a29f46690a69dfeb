"""What costs too much CPU is named in the log, also while it holds the interpreter's lock."""

import subprocess
import sys

import pytest
from django.conf import settings

from accounts.models import User
from core.http import requests
from tests.harness.clients import logged_in_client
from tests.harness.rest_client import Rest

STALL = """
import asyncio, unicodedata
from config.observability import stall_watch

async def stall():
    stall_watch.STALL_SECONDS = 0.05
    watch = asyncio.create_task(stall_watch.watch_for_stalls())
    await asyncio.sleep(0)
    unicodedata.normalize("NFC", "a" + "\\u0315" * 7_000 + "\\u0300" * 7_000)
    watch.cancel()

asyncio.run(stall())
"""


def test_code_that_stops_every_thread_is_named_on_stderr() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STALL],
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "in stall" in ended.stderr


def test_a_request_over_its_budget_is_logged_with_its_route(
    alice: User, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    rest, browser = Rest.of(alice), logged_in_client(alice)
    for _ in range(2):  # the first of a process loads what it needs
        caplog.clear()
        rest.get("/playbooks")
    assert "of CPU" not in caplog.text
    monkeypatch.setattr(requests, "CPU_BUDGET", 0.0)
    rest.get("/playbooks?query=secret")
    browser.get("/playbooks?q=secret")
    assert "ms of CPU: GET api/v1/playbooks\n" in caplog.text
    assert "ms of CPU: GET playbooks\n" in caplog.text
    assert "secret" not in [record.message for record in caplog.records]
