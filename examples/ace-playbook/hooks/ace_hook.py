#!/usr/bin/env python3
"""Hooks of Claude Code and Codex: read the playbook as a session starts, report as it ends.

Needs Python 3.9 and nothing else. Reads ACE_API_KEY, ACE_PLAYBOOK (id or name), ACE_URL (default
http://127.0.0.1:8000) and ACE_TRACE (0: report no commands). Whatever goes wrong is one line on
stderr, within seconds: the agent's session never fails because of it.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

from ace_transcript import facts_of, mask

# Both programs cut what a hook adds to the context after 10,000 characters.
ROOM_TOKENS = 2200
SECONDS = {"start": 5, "prompt": 1, "end": 2}
UNFINISHED_AFTER = 3600
FORGOTTEN_AFTER = 14 * 24 * 3600
MAX_TASK = 3000


class Refused(Exception):
    """The server refused; the text is its message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def main(event: str) -> None:
    given = json.loads(sys.stdin.read() or "{}")
    store = Store(str(given.get("session_id", "")))
    if event == "start":
        start(store, given)
    elif event == "prompt":
        remember_prompt(store, given)
    elif event == "end":
        store.update(ended=True)
        report(store)


def start(store: Store, given: dict[str, Any]) -> None:
    """Put the advice before the model; and send what an earlier session could not."""
    playbook = find_playbook()
    read = ask("GET", f"/playbooks/{playbook}?max_tokens={ROOM_TOKENS}")
    store.update(
        playbook=playbook,
        serving_id=read["serving_id"],
        bullets=re.findall(r"\[([a-z]{2,8}-\d{5,7})\]", read["content"]),
        transcript=given.get("transcript_path"),
    )
    context = advice(read)
    answer = {"hookEventName": "SessionStart", "additionalContext": context}
    print(json.dumps({"hookSpecificOutput": answer}), flush=True)
    for left in store.unfinished():
        report(left)


def advice(read: dict[str, Any]) -> str:
    """What the model gets to see."""
    missing = sum(part["bullets"] for part in read.get("left_out", ()))
    more = f"\n\n{missing} more bullets did not fit: get_playbook of the MCP server reads all."
    return (
        f"Advice from the playbook “{read['name']}” (version {read['version']}), learned from"
        " earlier tasks. What your user tells you comes first. When you use a bullet, name its id"
        " in your answer, such as [str-00001]. The outcome is reported when the session ends; call"
        f" report_outcome yourself only to judge it better (playbook_id {read['id']}, serving_id"
        f" {read['serving_id']}).\n\n{read['content']}{more if missing else ''}"
    )


def remember_prompt(store: Store, given: dict[str, Any]) -> None:
    """What the task is, in the user's words."""
    prompts = [*store.state.get("prompts", []), str(given.get("prompt", ""))[:MAX_TASK]]
    store.update(prompts=prompts, transcript=given.get("transcript_path"), ended=False)


def report(store: Store) -> None:
    """Send the outcome of what was asked since the last report; sending it twice adds nothing."""
    state, prompts = store.state, store.state.get("prompts", [])
    done = state.get("reported", 0)
    if not state.get("playbook") or len(prompts) <= done:
        return
    facts = facts_of(state.get("transcript"), since=done)
    if not facts.reported_by_model:
        cited = [bullet for bullet in facts.cited if bullet in state["bullets"]]
        body = {
            "task_description": mask(" / ".join(prompts[done:]))[:MAX_TASK] or "(no words)",
            "outcome": facts.outcome,
            "notes": f"Reported by the hook of {facts.client}: {facts.why}",
            "reasoning_trace": "" if os.environ.get("ACE_TRACE") == "0" else facts.trace,
            "bullet_ids": cited,
            "serving_id": state["serving_id"],
            "idempotency_key": f"hook-{store.session}-{len(prompts)}",
        }
        try:
            ask("POST", f"/playbooks/{state['playbook']}/outcomes", body)
        except Refused as refused:
            if refused.status != 409:  # 409: this very session was reported, with other words
                raise
    store.update(reported=len(prompts))


def find_playbook() -> str:
    """The id of the playbook of ACE_PLAYBOOK, which may be its name."""
    wanted = os.environ.get("ACE_PLAYBOOK", "").strip()
    if not wanted:
        raise LookupError("set ACE_PLAYBOOK to the id or the name of a playbook of yours")
    try:
        return str(UUID(wanted))
    except ValueError:
        found = ask("GET", "/playbooks?page_size=100&query=" + quote(wanted))["results"]
    same = [row["id"] for row in found if row["name"].casefold() == wanted.casefold()]
    if not same:
        raise LookupError(f"no playbook of yours is called “{wanted}” (ACE_PLAYBOOK)")
    return str(same[0])


def ask(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    """The JSON answer of the REST API; the key never goes to another host by a redirect."""
    key = os.environ.get("ACE_API_KEY", "")
    if not key:
        raise LookupError("set ACE_API_KEY to an API key with the scopes read and write")
    url = os.environ.get("ACE_URL", "http://127.0.0.1:8000").rstrip("/") + "/api/v1" + path
    if not url.startswith(("http://", "https://")):
        raise LookupError("ACE_URL must begin with https:// or http://")
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, method=method)  # noqa: S310 - http(s), see above
    request.add_unredirected_header("Authorization", f"Bearer {key}")
    request.add_header("Content-Type", "application/json")
    request.add_header("User-Agent", "ace-playbook-hook/1")
    try:
        with urllib.request.urlopen(request, timeout=SECONDS["start"]) as answer:  # noqa: S310
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise Refused(error.code, sentence_of(error)) from None


def sentence_of(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read(10_000))["error"]["message"])[:300]
    except (ValueError, KeyError, TypeError, OSError):
        return f"the server answered {error.code}"


class Store:
    """What this session read and was asked, in a file that only its user can read."""

    def __init__(self, session: str) -> None:
        self.session = re.sub(r"[^0-9A-Za-z-]", "", session)[:80] or "unknown"
        self.folder = folder()
        self.path = self.folder / f"{self.session}.json"
        try:
            self.state: dict[str, Any] = json.loads(self.path.read_text())
        except (OSError, ValueError):
            self.state = {}

    def update(self, **values: Any) -> None:
        self.state |= {name: value for name, value in values.items() if value is not None}
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(self.state, file)
        fresh.replace(self.path)

    def unfinished(self) -> list[Store]:
        """Sessions that ended without a report: the server was away, or the program was killed."""
        others = []
        for path in sorted(self.folder.glob("*.json")):
            age = time.time() - path.stat().st_mtime
            if age > FORGOTTEN_AFTER:
                path.unlink(missing_ok=True)
            elif path != self.path:
                others.append((age, Store(path.stem)))
        return [store for age, store in others if store.is_due(age)][:3]

    def is_due(self, age: float) -> bool:
        """Something was asked, is not reported, and the session is over."""
        waits = len(self.state.get("prompts", [])) > self.state.get("reported", 0)
        return waits and (bool(self.state.get("ended")) or age > UNFINISHED_AFTER)


def folder() -> Path:
    """Where the program lets its plugins keep files, else a cache folder."""
    given = os.environ.get("CLAUDE_PLUGIN_DATA") or os.environ.get("PLUGIN_DATA")
    base = Path(given) if given else Path.home() / ".cache" / "ace-playbook"
    return base / "sessions"


def too_late(*_: Any) -> None:
    raise TimeoutError("no answer in time")


if __name__ == "__main__":
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    try:
        if hasattr(signal, "SIGALRM"):  # urllib's own time-out is per read
            signal.signal(signal.SIGALRM, too_late)
            signal.alarm(SECONDS.get(wanted, 1))
        main(wanted)
    except Exception as error:  # noqa: BLE001 - an agent's session must never fail because of us
        print(f"ace-playbook: {mask(str(error)) or type(error).__name__}"[:300], file=sys.stderr)
