"""`manage.py run_mcp` in a process of its own."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import httpx2
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from accounts.keys.api_keys import revoke_api_key
from accounts.models import ApiKey, User
from mcp_bridge.models import ClientActivity
from mcp_bridge.protocol.errors import ERROR_META_KEY
from playbooks.models import Playbook
from tests.factories import make_key
from tests.harness.live_server import text_of
from tests.harness.postgres import free_port

T = TypeVar("T")


@pytest.fixture
def key(transactional_db: None, alice: User) -> tuple[ApiKey, str]:
    return make_key(alice)


def environment(token: str) -> dict[str, str]:
    keep = {"PATH", "HOME", "TEST_DATABASE_URL"}
    return {name: value for name, value in os.environ.items() if name in keep} | {
        "DJANGO_SETTINGS_MODULE": "config.settings.test",
        "ACE_TEST_DATABASE": str(connection.settings_dict["NAME"]),
        "ACE_API_KEY": token,
    }


def over_stdio(token: str, work: Callable[[Client], Awaitable[T]], mode: str = "auto") -> T:
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "tests.harness.manage_command", "run_mcp"],
        env=environment(token),
        cwd=settings.BASE_DIR,
    )

    async def run() -> T:
        async with Client(server, mode=mode) as client:
            return await work(client)

    return asyncio.run(run())


def manage(folder: Path, *arguments: str, **extra: str) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": os.environ["PATH"], "ACE_DATA_DIR": str(folder), **extra}
    return subprocess.run(
        [sys.executable, str(settings.BASE_DIR / "manage.py"), *arguments],
        env=env, cwd=settings.BASE_DIR, capture_output=True, text=True, timeout=60, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip


LEGACY = ("legacy", "2025-11-25")


@pytest.mark.parametrize(
    ("mode", "spoken"),
    [("auto", "2026-07-28"), pytest.param(*LEGACY, marks=pytest.mark.nightly)],
)
def test_an_agent_reads_and_reports_over_stdio_until_its_key_is_revoked(
    key: tuple[ApiKey, str], playbook: Playbook, mode: str, spoken: str
) -> None:
    """One process: its start takes two seconds of CPU."""

    async def work(client: Client) -> object:
        pk = str(playbook.pk)
        assert client.protocol_version == spoken
        assert len((await client.list_tools()).tools) == 11
        read = await client.call_tool("get_playbook", {"playbook_id": pk})
        report = {"playbook_id": pk, "task_description": "Build", "outcome": "success"}
        report["serving_id"] = (read.structured_content or {})["serving_id"]
        answer = await client.call_tool("report_outcome", report)
        assert not answer.is_error
        await asyncio.to_thread(revoke, key[0])
        refused = await client.call_tool("list_playbooks", {})
        assert refused.is_error
        assert (refused.meta or {})[ERROR_META_KEY]["code"] == "not_authenticated"
        assert "API key" in text_of(refused)
        return answer.structured_content

    answer = over_stdio(key[1], work, mode)
    assert isinstance(answer, dict)
    assert (answer["status"], answer["pending_outcomes"]) == ("recorded", 1)
    tools = ClientActivity.objects.filter(api_key=key[0]).values_list("tool", flat=True)
    assert list(tools) == ["report_outcome"]


def revoke(key: ApiKey) -> None:
    revoke_api_key(key=key, reason="test")
    connection.close()


@pytest.mark.parametrize("token", ["", "ace_live_nonsense"])
def test_a_missing_or_bad_key_exits_with_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], token: str
) -> None:
    monkeypatch.setenv("ACE_API_KEY", token)
    with pytest.raises(SystemExit) as ended:
        call_command("run_mcp")
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (1, "")
    assert printed.err.strip().startswith(("Set ACE_API_KEY", "ACE_API_KEY is not"))
    assert len(printed.err.strip().splitlines()) == 1


def test_a_well_formed_key_on_an_empty_database_says_to_migrate(
    tmp_path: Path, key: tuple[ApiKey, str]
) -> None:
    done = manage(tmp_path, "run_mcp", ACE_API_KEY=key[1])
    assert (done.returncode, done.stdout) == (1, "")
    (sentence,) = done.stderr.strip().splitlines()
    assert "migrate" in sentence


def test_the_http_transport_alone_serves_mcp_and_no_pages(key: tuple[ApiKey, str]) -> None:
    port = str(free_port())
    command = ["-m", "tests.harness.manage_command", "run_mcp", "--transport", "streamable-http"]
    server = subprocess.Popen(
        [sys.executable, *command, "--port", port], env=environment(key[1]), cwd=settings.BASE_DIR
    )
    try:
        url = f"http://127.0.0.1:{port}"
        assert wait_for(f"{url}/mcp") == 401
        with httpx2.Client(trust_env=False, timeout=30) as client:
            assert client.get(f"{url}/login").status_code == 404
    finally:
        server.terminate()
        assert server.wait(30) in {0, -signal.SIGTERM}


def wait_for(url: str) -> int:
    """The status of the first answer; the transport retries refused connections."""
    again = httpx2.HTTPTransport(retries=9)
    with httpx2.Client(trust_env=False, transport=again, timeout=30) as client:
        return client.post(url).status_code
