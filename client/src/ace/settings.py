"""Where the server is, which key opens it, and which playbook belongs to a folder.

The environment comes first (ACE_URL, ACE_API_KEY, ACE_PLAYBOOK), then the file that `ace connect`
writes for its user, and for the playbook the nearest `.ace.toml`. A repository may name a playbook
but never a server: a cloned one must not send anybody's key elsewhere.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

DEFAULT_URL = "http://127.0.0.1:8000"
MAPPING = ".ace.toml"
AGENT_SCOPES = "read report"


class NotConfigured(Exception):
    """Something is missing; the text says what to set."""


@dataclass(frozen=True)
class Settings:
    """`playbook` is an id or a name, empty when nothing maps the folder to one.

    Without a `key` the stored login is used.
    """

    url: str
    key: str
    playbook: str = ""


def load_settings(folder: str | Path | None = None) -> Settings:
    """The settings for work in `folder` (default: the current one). Raises NotConfigured."""
    stored = read_user_file()
    url = (os.environ.get("ACE_URL") or stored.get("url") or DEFAULT_URL).rstrip("/")
    key = os.environ.get("ACE_API_KEY", "").strip()
    known = stored if stored.get("url") == url else {}
    key = key or known.get("key", "")
    if not key and not known.get("login"):
        raise NotConfigured("set ACE_API_KEY to a key that reads and reports, or run: ace connect")
    playbook = os.environ.get("ACE_PLAYBOOK", "").strip() or mapped_playbook(folder)
    return Settings(url, key, playbook or stored.get("playbook", ""))


def send(
    url: str,
    data: bytes,
    headers: Mapping[str, str] = MappingProxyType({}),
    *,
    seconds: float,
    token: str = "",
    method: str = "POST",
) -> bytes:
    """Send to the server; the body of its answer. The token follows no redirect.

    Raises NotConfigured for an address that is not the web's, HTTPError, OSError.
    """
    if not url.startswith(("http://", "https://")):
        raise NotConfigured("ACE_URL must begin with https:// or http://")
    request = urllib.request.Request(  # noqa: S310 - checked above
        url, data, dict(headers), method=method
    )
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=seconds) as answer:  # noqa: S310 - checked above
        body: bytes = answer.read()
    return body


def access_token(settings: Settings, *, seconds: float, scope: str = "") -> str:
    """The token of the stored login, renewed when it has expired. Raises NotConfigured.

    With `scope` it is renewed at once, and neither it nor its successors hold more than that. A
    refresh token works once: processes take turns.
    """
    with locked(user_file().with_suffix(".lock")):
        stored = read_user_file()
        login = stored.get("login") or {}
        if not scope and login.get("expires", 0) > time.time() + 30:
            return str(login["access"])
        fields = {"grant_type": "refresh_token", "refresh_token": login.get("refresh", "")}
        fields |= {"client_id": login.get("client", ""), "resource": f"{settings.url}/mcp"}
        fields |= {"scope": scope} if scope else {}
        data = urllib.parse.urlencode(fields).encode()
        try:
            tokens = json.loads(send(f"{settings.url}/oauth/token", data, seconds=seconds))
        except urllib.error.HTTPError as error:
            error.close()
            raise NotConfigured("the login has expired; run: ace connect") from None
        stored["login"] = login_of(login["client"], tokens)
        write_private(user_file(), json.dumps(stored))
        return str(tokens["access_token"])


def login_of(client: str, tokens: dict[str, Any]) -> dict[str, Any]:
    """What is stored of an answer of /oauth/token."""
    expires = time.time() + float(tokens.get("expires_in", 900))
    names = {"access": tokens["access_token"], "refresh": tokens["refresh_token"]}
    return {"client": client, "expires": expires, "scope": tokens["scope"], **names}


def give_up_write(settings: Settings) -> None:
    """The stored login reads and reports from here on; its wider tokens end."""
    login = read_user_file().get("login") or {}
    if "write" in login.get("scope", "").split():
        access_token(settings, seconds=20, scope=AGENT_SCOPES)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """One process at a time; the lock ends with its process."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as lock:
        take_lock(lock.fileno())
        yield


def take_lock(file: int) -> None:
    if sys.platform == "win32":
        while True:
            try:
                msvcrt.locking(file, msvcrt.LK_LOCK, 1)
            except OSError:
                continue  # it gives up after ten seconds
            return
    else:
        fcntl.flock(file, fcntl.LOCK_EX)


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


def commit_of(revision: str = "HEAD", folder: str | Path | None = None) -> str:
    """The full id of the commit that git finds by this name in the folder, or an empty text."""
    command = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options"]
    command.append(f"{revision}^{{commit}}")
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and no options in the name
            command, cwd=folder, capture_output=True, text=True, timeout=2, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def write_private(path: Path, text: str) -> None:
    """Replace a file that only its user may read; a reader sees the old text or the new one."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    attempts = 20 if sys.platform == "win32" else 1  # it replaces no file that somebody reads
    while attempts:
        attempts -= 1
        try:
            fresh.replace(path)
            return
        except PermissionError:
            if not attempts:
                raise
            time.sleep(0.05)
