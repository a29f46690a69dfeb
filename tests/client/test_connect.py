"""`ace connect` in an empty home, and the other commands after it."""

import json
import os
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connection

from accounts.models import ConnectedApp, User
from ace import cli, programs, settings
from evolution.models import Outcome
from playbooks.models import Playbook
from playbooks.starters.loader import load_starters
from tests.factories import make_key, make_playbook
from tests.harness.oauth_client import browser, query_of

PROGRAMS = (".claude", ".codex", ".cursor", ".gemini", ".codeium/windsurf", ".config/opencode")


@pytest.fixture
def home(tmp_path: Path, live_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home with six programs and a repository."""
    for name in ("ACE_API_KEY", "ACE_PLAYBOOK", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("ACE_URL", live_url)
    for name in (*PROGRAMS, "src/web-app/.git", "src/web-app/lib"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "src/web-app/lib")
    return tmp_path


@pytest.fixture
def asked(live_url: str, alice: User, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Alice allows in her browser what is asked; the scopes that were asked for."""
    scopes: list[str] = []
    threads: list[threading.Thread] = []

    def answer(address: str) -> None:
        page = browser(alice, host=urlsplit(live_url).netloc)
        sent = {"scopes": scopes[-1].split(), "answer": "allow"}
        back = page.post(address.removeprefix(live_url), sent)["Location"]
        urllib.request.urlopen(back).close()  # noqa: S310 - our own redirect
        connection.close()

    def consent(address: str) -> None:
        scopes.append(query_of(address)["scope"])
        threads.append(threading.Thread(target=answer, args=(address,)))
        threads[-1].start()

    monkeypatch.setattr("webbrowser.open", consent)
    yield scopes
    for thread in threads:
        thread.join()


def ace(*arguments: str) -> int:
    return cli.main(arguments)


def files(home: Path) -> dict[str, str]:
    """The programs' files, and the repository's mapping."""
    found = {path.relative_to(home): path for path in home.rglob("*") if path.is_file()}
    return {str(n): p.read_text() for n, p in found.items() if ".config/ace" not in str(n)}


def test_connect_writes_every_program_clones_a_starter_and_reads(
    home: Path, alice: User, capsys: pytest.CaptureFixture[str]
) -> None:
    load_starters()
    token = make_key(alice, scopes=["read", "write"])[1]
    (home / ".cursor/mcp.json").write_text('{"mcpServers": {"other": {"command": "x"}}}')
    before = files(home)
    assert ace("connect", "--key", token, "--yes") == 0
    output = capsys.readouterr().out
    assert "Connected: Claude Code, Codex, Cursor, Gemini CLI, Windsurf, opencode" in output
    written = files(home)
    clone = Playbook.objects.for_user(alice).get()
    assert clone.name == "web-app"
    assert written["src/web-app/.ace.toml"] == f'playbook = "{clone.pk}"\n'
    assert set(json.loads(written[".cursor/mcp.json"])["mcpServers"]) == {"other", "ace"}
    codex = tomllib.loads(written[".codex/config.toml"])["mcp_servers"]["ace"]
    assert codex == {"command": sys.executable, "args": ["-m", "ace", "mcp"]}
    assert set(json.loads(written[".claude/settings.json"])["hooks"]) == {
        "SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"
    }  # fmt: skip
    assert not [name for name, text in written.items() if token in text]
    stored = home / ".config/ace/client.json"
    assert (token in stored.read_text(), stored.stat().st_mode & 0o777) == (True, 0o600)

    assert ace("connect", "--yes") == 0  # a second time changes nothing and clones nothing
    assert files(home) == written
    assert Playbook.objects.for_user(alice).count() == 1
    assert ace("doctor") == 0
    assert ace("connect", "--undo") == 0
    assert files(home) == before


def test_a_login_in_the_browser_is_all_there_is_to_type(
    home: Path, alice: User, asked: list[str]
) -> None:
    load_starters()
    assert ace("connect", "--yes") == 0
    stored = settings.read_user_file()
    assert (asked, stored["login"]["scope"]) == (["read report write"], "read report")
    assert ConnectedApp.objects.get().scopes == ["read", "report"]
    stored["login"]["expires"] = 0  # the next call renews it
    settings.write_private(settings.user_file(), json.dumps(stored))
    assert ace("read") == 0
    renewed = settings.read_user_file()["login"]
    assert (renewed["refresh"] != stored["login"]["refresh"], renewed["scope"]) == (
        True, "read report"
    )  # fmt: skip

    agents = home / "AGENTS.md"  # a second playbook is a second consent, and given up as well
    agents.write_text("# Rules\n\n- Run the linter before each commit.\n")
    assert ace("import", str(agents), "--name", "House rules") == 0
    assert Playbook.objects.for_user(alice).get(name="House rules").bullets.count() == 1
    assert asked == ["read report write"] * 2
    assert settings.read_user_file()["login"]["scope"] == "read report"
    assert ace("report", "success", "--task", "Make it green") == 0


def test_a_known_playbook_needs_no_scope_write(
    home: Path, playbook: Playbook, asked: list[str]
) -> None:
    assert ace("connect", "--playbook", playbook.name, "--yes") == 0
    assert asked == ["read report"]


def test_nothing_is_written_without_a_yes(
    home: Path,
    alice: User,
    playbook: Playbook,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("builtins.input", lambda _: "n")
    before = files(home)
    assert ace("connect", "--key", make_key(alice)[1], "--playbook", playbook.name) == 1
    assert files(home) == before
    output = capsys.readouterr().out
    assert ("Connected" in output, "Nothing was written." in output) == (False, True)


def test_what_was_changed_since_is_not_undone(
    home: Path, alice: User, playbook: Playbook, capsys: pytest.CaptureFixture[str]
) -> None:
    ace("connect", "--key", make_key(alice)[1], "--playbook", playbook.name, "--yes")
    path = home / ".cursor/mcp.json"
    path.write_text(path.read_text() + "\n")
    assert ace("connect", "--undo") == 1
    assert str(path) in capsys.readouterr().err
    assert path.exists()


def test_a_file_with_comments_is_left_alone(
    home: Path, alice: User, playbook: Playbook, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".config/zed").mkdir()
    commented = home / ".config/zed/settings.json"
    commented.write_text("// mine\n{}\n")
    ace("connect", "--key", make_key(alice)[1], "--playbook", playbook.name, "--yes")
    assert commented.read_text() == "// mine\n{}\n"
    output = capsys.readouterr()
    assert "Zed: not changed" in output.err
    assert '"context_servers"' in output.err  # what to add by hand
    assert "Zed" not in output.out.partition("Connected")[2]
    assert ace("doctor") == 0


def test_a_repository_names_a_playbook_and_never_a_server(home: Path) -> None:
    Path(".ace.toml").write_text('url = "https://evil.example"\nplaybook = "Theirs"\n')
    settings.write_private(
        settings.user_file(), json.dumps({"url": os.environ["ACE_URL"], "key": "k"})
    )
    found = settings.load_settings()
    assert found.playbook == "Theirs"
    assert found.url.startswith("http://127.0.0.1")
    assert settings.mapped_playbook(home) == ""


def test_read_and_report_from_the_command_line(
    home: Path, alice: User, playbook: Playbook, capsys: pytest.CaptureFixture[str]
) -> None:
    ace("connect", "--key", make_key(alice)[1], "--playbook", playbook.name, "--yes")
    capsys.readouterr()
    assert ace("read") == 0
    serving = capsys.readouterr().out.rpartition("serving_id ")[2].strip()
    options = ["--bullets", "str-00001", "str-99999", "--serving-id", serving]
    assert ace("report", "success", "--task", "Make it green", *options) == 0
    assert "no str-99999" in capsys.readouterr().err
    outcome = Outcome.objects.get()
    assert (outcome.signal, outcome.cited_bullets) == ("human", ["str-00001"])
    assert (outcome.version_assumed, ace("status")) == (False, 0)


def test_the_local_server_passes_messages_on_and_says_the_repository(
    home: Path, alice: User, playbook: Playbook
) -> None:
    make_playbook(alice, name="Web app")
    hello: dict[str, Any] = {"protocolVersion": "2025-06-18", "capabilities": {}}
    hello["clientInfo"] = {"name": "editor", "version": "1"}
    sent = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "list_playbooks"}},
    ]
    settings.write_private(
        settings.user_file(),
        json.dumps({"url": os.environ["ACE_URL"], "key": make_key(alice)[1]}),
    )
    done = subprocess.run(
        programs.COMMAND + ["mcp"],
        input="".join(json.dumps(message) + "\n" for message in sent),
        env={**os.environ, "PYTHONPATH": str(Path(cli.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [1, 2, 3]
    assert len(answers[1]["result"]["tools"]) > 5
    listed = answers[2]["result"]["structuredContent"]["result"]
    assert {row["name"]: row["fits"] for row in listed} == {playbook.name: False, "Web app": True}


def test_settings_and_hooks_have_the_paths_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    code = {"windows": "Code/User", "mac": "Library/Application Support/Code/User"}
    found = [
        programs.settings_folder(".config/Code/User", platform=platform, **code)
        for platform in ("linux", "darwin", "win32")
    ]
    assert found == [".config/Code/User", code["mac"], "AppData/Roaming/Code/User"]
    assert (
        programs.settings_folder(".config/zed", windows="Zed", platform="darwin") == ".config/zed"
    )
    python = "C:\\Program Files\\Python\\python.exe"
    monkeypatch.setattr(programs, "COMMAND", [python, "-m", "ace"])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    command = programs.hook_command("stop", platform="win32")
    assert command == '"C:/Program Files/Python/python.exe" -m ace hook stop'
    assert shlex.split(command)[1:] == ["-m", "ace", "hook", "stop"]
    assert shlex.split(programs.hook_command("stop", platform="linux"))[0] == python


def test_on_windows_the_installed_command_is_named_and_a_lock_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: f"C:\\bin\\{name}.exe")
    assert programs.hook_command("stop", platform="win32") == "ace hook stop"
    tried = iter([OSError(36, "deadlock"), None])

    class Msvcrt(ModuleType):
        LK_LOCK = 1

        @staticmethod
        def locking(file: int, mode: int, size: int) -> None:
            assert (file, mode, size) == (7, 1, 1)
            if (error := next(tried)) is not None:
                raise error

    monkeypatch.setitem(sys.modules, "msvcrt", Msvcrt("msvcrt"))
    monkeypatch.setattr(sys, "platform", "win32")
    source = Path(settings.__file__).read_text()
    found = ModuleType("settings_of_windows")
    monkeypatch.setitem(sys.modules, found.__name__, found)
    exec(compile(source, settings.__file__, "exec"), found.__dict__)  # noqa: S102 - our own module
    found.take_lock(7)
    assert next(tried, "both tried") == "both tried"
