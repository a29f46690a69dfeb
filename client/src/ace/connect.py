"""`ace connect`: from an empty home to the first read, with a preview and an undo."""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ace import login
from ace.api import Api, Refused
from ace.programs import Unreadable, installed
from ace.settings import (
    AGENT_SCOPES,
    DEFAULT_URL,
    MAPPING,
    NotConfigured,
    give_up_write,
    load_settings,
    mapped_playbook,
    read_user_file,
    user_file,
    write_private,
)

T = TypeVar("T")
WRITE_SCOPES = f"{AGENT_SCOPES} write"


def run(given: argparse.Namespace) -> int:
    """Log in, write what was agreed to, and read the playbook once."""
    if given.undo:
        return undo()
    playbook = given.playbook or mapped_playbook()
    scope = AGENT_SCOPES if playbook else WRITE_SCOPES
    store_credential(given.url.rstrip("/"), given.key, scope)
    playbook = playbook or with_write(choose_playbook)
    api = Api(load_settings())
    edits = mapping_edit(playbook)
    for program in installed():
        try:
            edits |= program.edits()
        except (Unreadable, OSError, UnicodeError) as error:
            print(f"{program.name}: not changed, {error}. Add this yourself:", file=sys.stderr)
            for name, edit in program.files.items():
                print(f"{Path.home() / name}\n{edit('')}", file=sys.stderr)
    if edits and not agreed(edits, given.yes):
        print("Nothing was written.")
        return 1
    write(edits)
    read = api.read(playbook, max_tokens=2000)
    names = ", ".join(connected()) or "no agent program found"
    print(f"Connected: {names}. Agents here read “{read['name']}”, version {read['version']}.")
    return 0


def store_credential(url: str, key: str, scope: str) -> None:
    """Keep a key, or the login of the browser, unless one is there for this server."""
    stored = read_user_file()
    url = url or os.environ.get("ACE_URL", "").rstrip("/") or stored.get("url") or DEFAULT_URL
    is_known = stored.get("url") == url and (stored.get("key") or stored.get("login"))
    if key:
        stored = {"url": url, "key": key}
    elif not is_known:
        try:
            load_settings()  # ACE_API_KEY in the environment is enough
            stored |= {"url": url}
        except NotConfigured:
            stored = {"url": url, "login": login.log_in(url, scope=scope)}
    write_private(user_file(), json.dumps(stored))


def with_write(work: Callable[[Api], T]) -> T:
    """The result of `work`, which may need the scope `write`.

    A login that has given it up is asked for again; afterwards it reads and reports only.
    """
    settings = load_settings()
    try:
        return work(Api(settings))
    except Refused as refused:
        if refused.code != "403" or settings.key:
            raise
        made = login.log_in(settings.url, scope=WRITE_SCOPES)
        write_private(user_file(), json.dumps({**read_user_file(), "login": made}))
        return work(Api(settings))
    finally:
        give_up_write(settings)


def choose_playbook(api: Api, folder: Path | None = None) -> str:
    """The id of the user's playbook of this folder's name, else of a clone of a fitting starter."""
    name = (folder or project_folder()).name
    rows = api.playbooks()
    for row in rows:
        if row["name"].casefold() == name.casefold() and not row["is_starter"]:
            return str(row["id"])
    starters = [row for row in rows if row["is_starter"]]
    if not starters:
        return str(api.call("create_playbook", name=name)["id"])
    fitting = next((row for row in starters if "coding" in row["name"].casefold()), starters[0])
    return str(api.call("clone_playbook", playbook_id=fitting["id"], name=name)["id"])


def project_folder() -> Path:
    """The root of the repository, else the current folder."""
    here = Path.cwd()
    return next((place for place in (here, *here.parents) if (place / ".git").exists()), here)


def mapping_edit(playbook: str) -> dict[Path, str]:
    if mapped_playbook() == playbook:
        return {}
    return {project_folder() / MAPPING: f'playbook = "{playbook}"\n'}


def agreed(edits: dict[Path, str], is_sure: bool) -> bool:
    """Show every change, and ask."""
    for path, after in edits.items():
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = difflib.unified_diff(
            before.splitlines(), after.splitlines(), str(path), str(path), lineterm="", n=1
        )
        print("\n".join(lines))
    return is_sure or input("Write this? [y/N] ").strip().lower() in {"y", "yes"}


def undo_file() -> Path:
    return user_file().with_name("undo.json")


def write(edits: dict[Path, str]) -> None:
    """Write the files; what they were before the first time is kept for --undo."""
    if not edits:
        return
    try:
        kept = json.loads(undo_file().read_text())
    except (OSError, ValueError):
        kept = {}
    for path, after in edits.items():
        before = path.read_text(encoding="utf-8") if path.exists() else None
        kept[str(path)] = {"before": kept.get(str(path), {}).get("before", before), "after": after}
    write_private(undo_file(), json.dumps(kept))
    for path, after in edits.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(after, encoding="utf-8")


def undo() -> int:
    """Restore each file that is still as it was written; name the others."""
    try:
        kept = json.loads(undo_file().read_text())
    except (OSError, ValueError):
        raise NotConfigured("there is nothing to undo") from None
    changed = {}
    for name, texts in kept.items():
        path = Path(name)
        if not path.exists() or path.read_text(encoding="utf-8") != texts["after"]:
            changed[name] = texts
        elif texts["before"] is None:
            path.unlink()
        else:
            path.write_text(texts["before"], encoding="utf-8")
    undo_file().unlink()
    for name in changed:
        print(f"{name} was changed since: remove its ace entries yourself.", file=sys.stderr)
    return int(bool(changed))


def check_settings() -> str:
    settings = load_settings()
    return f"{settings.url}, {'a key' if settings.key else 'a login'}"


def check_server() -> str:
    return f"{len(Api(load_settings()).playbooks())} playbooks"


def check_playbook() -> str:
    settings = load_settings()
    if not settings.playbook:
        raise NotConfigured("none for this folder; run: ace connect")
    read = Api(settings).read(settings.playbook, max_tokens=100)
    return f"{read['name']}, version {read['version']}"


def check_programs() -> str:
    found = connected()
    if not found:
        raise LookupError("none is connected; run: ace connect")
    return ", ".join(found)


def connected() -> list[str]:
    """The names of the programs whose files have our entries."""
    found = []
    for program in installed():
        with suppress(Unreadable, OSError, UnicodeError):
            if not program.edits():
                found.append(program.name)
    return found


CHECKS: dict[str, Callable[[], str]] = {
    "settings": check_settings,
    "server": check_server,
    "playbook": check_playbook,
    "programs": check_programs,
}
