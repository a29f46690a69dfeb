"""The agent programs that `ace connect` knows, and what it writes into their files.

Every program starts the same local server, `ace mcp`, so that no file of a program holds a key.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "ace"]
EVENTS = {"start": 8, "prompt": 3, "stop": 3, "end": 3}
"""Hooks by their name here, and the seconds that a program waits for each."""


class Unreadable(Exception):
    """A file is not plain JSON (it may have comments): nothing is written into it."""


@dataclass(frozen=True)
class Program:
    """`marker` is a folder that the program makes; `files` are edits by path below the home."""

    name: str
    binary: str
    marker: str
    files: dict[str, Callable[[str], str]]

    @property
    def is_installed(self) -> bool:
        return bool(shutil.which(self.binary)) or (Path.home() / self.marker).is_dir()

    def edits(self) -> dict[Path, str]:
        """The new text of each file that would change. Raises Unreadable."""
        changed = {}
        for name, edit in self.files.items():
            path = Path.home() / name
            before = path.read_text(encoding="utf-8-sig") if path.exists() else ""
            after = edit(before)
            if after != before:
                changed[path] = after
        return changed


def server(**more: Any) -> dict[str, Any]:
    return {"command": COMMAND[0], "args": [*COMMAND[1:], "mcp"], **more}


def hook_command(event: str, *, platform: str = sys.platform) -> str:
    """The command line of a hook.

    On Windows a path with spaces has no form that cmd, PowerShell and Git's bash all read, so the
    command's own name is used where it is installed outside a virtual environment.
    """
    words = [*COMMAND, "hook", event]
    if platform != "win32":
        return shlex.join(words)
    if shutil.which("ace") and "VIRTUAL_ENV" not in os.environ:
        return f"ace hook {event}"
    plain = (word.replace("\\", "/") for word in words)
    return " ".join(f'"{word}"' if " " in word else word for word in plain)


def settings_folder(
    usual: str, *, windows: str, mac: str = "", platform: str = sys.platform
) -> str:
    """Where a program keeps its settings, below the home."""
    return {"win32": f"AppData/Roaming/{windows}", "darwin": mac}.get(platform) or usual


def in_json(*keys: str, value: Any) -> Callable[[str], str]:
    """An edit that sets one value in a JSON file and keeps the rest."""

    def edit(text: str) -> str:
        whole = read_json(text)
        inner = whole
        for key in keys[:-1]:
            inner = inner.setdefault(key, {})
        if inner.get(keys[-1]) == value:
            return text
        inner[keys[-1]] = value
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"

    return edit


def with_hooks(
    names: dict[str, str], *, nested: bool = True, unit: int = 1
) -> Callable[[str], str]:
    """An edit that adds our hooks beside others; `names` gives the program's name of each event."""

    def edit(text: str) -> str:
        whole = read_json(text)
        hooks = whole.setdefault("hooks", {})
        for event, name in names.items():
            ours: dict[str, Any] = {"command": hook_command(event)}
            if nested:
                ours = {"hooks": [{"type": "command", **ours, "timeout": EVENTS[event] * unit}]}
            groups = hooks.setdefault(name, [])
            if ours not in groups:
                groups[:] = [group for group in groups if " hook " + event not in json.dumps(group)]
                groups.append(ours)
        if not nested:
            whole.setdefault("version", 1)
        return (
            json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
            if whole != read_json(text)
            else text
        )

    return edit


def both(*edits: Callable[[str], str]) -> Callable[[str], str]:
    def edit(text: str) -> str:
        for each in edits:
            text = each(text)
        return text

    return edit


def read_json(text: str) -> dict[str, Any]:
    try:
        whole = json.loads(text or "{}")
    except ValueError:
        raise Unreadable("it is not plain JSON") from None
    if not isinstance(whole, dict):
        raise Unreadable("it is not an object")
    return whole


def codex_toml(text: str) -> str:
    """One table at the end; an older one of ours is replaced."""
    arguments = json.dumps([*COMMAND[1:], "mcp"])
    table = f"[mcp_servers.ace]\ncommand = {json.dumps(COMMAND[0])}\nargs = {arguments}\n"
    kept = re.sub(r"^\[mcp_servers\.ace\]\n(?:(?!\[).*\n?)*", "", text, flags=re.M).rstrip()
    return f"{kept}\n\n{table}".lstrip()


def goose_yaml(text: str) -> str:
    """One extension at the head of the others."""
    if re.search(r"^ {2}ace:$", text, re.M):
        return text
    ours = (
        "  ace:\n    enabled: true\n    type: stdio\n    name: ace\n    timeout: 60\n"
        f"    cmd: {json.dumps(COMMAND[0])}\n    args: {json.dumps([*COMMAND[1:], 'mcp'])}\n"
    )
    head = re.search(r"^extensions:[ ]*\n", text, re.M)
    if head:
        return text[: head.end()] + ours + text[head.end() :]
    return f"{text.rstrip()}\nextensions:\n{ours}".lstrip()


CLAUDE_EVENTS = {
    "start": "SessionStart",
    "prompt": "UserPromptSubmit",
    "stop": "Stop",
    "end": "SessionEnd",
}
GEMINI_EVENTS = {
    "start": "SessionStart",
    "prompt": "BeforeAgent",
    "stop": "AfterAgent",
    "end": "SessionEnd",
}
CURSOR_EVENTS = {
    "start": "sessionStart",
    "prompt": "beforeSubmitPrompt",
    "stop": "stop",
    "end": "sessionEnd",
}
CODE = settings_folder(
    ".config/Code/User", windows="Code/User", mac="Library/Application Support/Code/User"
)
ZED = settings_folder(".config/zed", windows="Zed")
GOOSE = settings_folder(".config/goose", windows="Block/goose/config")
STDIO = {"type": "stdio"}

PROGRAMS = (
    Program(
        "Claude Code", "claude", ".claude",
        {
            ".claude.json": in_json("mcpServers", "ace", value=server(**STDIO)),
            ".claude/settings.json": with_hooks(CLAUDE_EVENTS),
        },
    ),
    Program(
        "Codex", "codex", ".codex",
        {".codex/config.toml": codex_toml, ".codex/hooks.json": with_hooks(CLAUDE_EVENTS)},
    ),
    Program(
        "Cursor", "cursor", ".cursor",
        {
            ".cursor/mcp.json": in_json("mcpServers", "ace", value=server()),
            ".cursor/hooks.json": with_hooks(CURSOR_EVENTS, nested=False),
        },
    ),
    Program(
        "Gemini CLI", "gemini", ".gemini",
        {
            ".gemini/settings.json": both(
                in_json("mcpServers", "ace", value=server()),
                with_hooks(GEMINI_EVENTS, unit=1000),
            )
        },
    ),
    Program(
        "VS Code", "code", CODE,
        {f"{CODE}/mcp.json": in_json("servers", "ace", value=server(**STDIO))},
    ),
    Program(
        "Windsurf", "windsurf", ".codeium/windsurf",
        {".codeium/windsurf/mcp_config.json": in_json("mcpServers", "ace", value=server())},
    ),
    Program(
        "opencode", "opencode", ".config/opencode",
        {
            ".config/opencode/opencode.json": in_json(
                "mcp", "ace", value={"type": "local", "command": [*COMMAND, "mcp"], "enabled": True}
            )
        },
    ),
    Program(
        "Zed", "zed", ZED,
        {
            f"{ZED}/settings.json": in_json(
                "context_servers", "ace", value=server(source="custom")
            )
        },
    ),
    Program("Goose", "goose", GOOSE, {f"{GOOSE}/config.yaml": goose_yaml}),
)  # fmt: skip


def installed() -> list[Program]:
    return [program for program in PROGRAMS if program.is_installed]
