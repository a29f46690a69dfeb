"""Where the server is, which key opens it, and which playbook belongs to a folder.

The environment comes first (ACE_URL, ACE_API_KEY, ACE_PLAYBOOK), then the file that `ace connect`
writes for its user, and for the playbook the nearest `.ace.toml`. A repository may name a playbook
but never a server: a cloned one must not send anybody's key elsewhere.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DEFAULT_URL = "http://127.0.0.1:8000"
MAPPING = ".ace.toml"


class NotConfigured(Exception):
    """Something is missing; the text says what to set."""


@dataclass(frozen=True)
class Settings:
    """`playbook` is an id or a name, empty when nothing maps the folder to one."""

    url: str
    key: str
    playbook: str = ""


def load_settings(folder: str | Path | None = None) -> Settings:
    """The settings for work in `folder` (default: the current one). Raises NotConfigured."""
    stored = read_user_file()
    url = (os.environ.get("ACE_URL") or stored.get("url") or DEFAULT_URL).rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise NotConfigured("ACE_URL must begin with https:// or http://")
    key = os.environ.get("ACE_API_KEY", "").strip()
    if not key and stored.get("url", DEFAULT_URL).rstrip("/") == url:
        key = stored.get("key", "")
    if not key:
        raise NotConfigured(
            "set ACE_API_KEY to an API key with the scope report, or run: ace connect"
        )
    playbook = os.environ.get("ACE_PLAYBOOK", "").strip() or mapped_playbook(folder)
    return Settings(url, key, playbook or stored.get("playbook", ""))


def user_file() -> Path:
    """Server, key and default playbook of this user, readable by nobody else."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "ace" / "client.json"


def read_user_file() -> dict[str, Any]:
    try:
        stored = json.loads(user_file().read_text())
    except (OSError, ValueError):
        return {}
    return stored if isinstance(stored, dict) else {}


def mapped_playbook(folder: str | Path | None = None) -> str:
    """The playbook of the nearest `.ace.toml` at or above the folder, or an empty text."""
    start = Path(folder or Path.cwd()).absolute()
    for place in (start, *start.parents):
        try:
            text = (place / MAPPING).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        found = re.search(r'^\s*playbook\s*=\s*"([^"\n]*)"', text, re.M)
        return found[1].strip() if found else ""
    return ""


def write_private(path: Path, text: str) -> None:
    """Replace a file that only its user may read; a reader sees the old text or the new one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
