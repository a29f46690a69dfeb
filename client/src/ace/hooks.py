"""Hooks of Claude Code and Codex: read the playbook as a session starts, report each task's end.

Needs Python 3.9 and nothing else. Whatever goes wrong is one line, within seconds: the agent's
session never fails because of it. Programs cancel a hook that they no longer wait for, so a report
is made and sent by a child of its own.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ace.api import Api
from ace.outbox import Outbox
from ace.settings import NotConfigured, commit_of, load_settings, locked, write_private
from ace.transcripts import Facts, facts_of, mask

# Both programs cut what a hook adds to the context after 10,000 characters.
ROOM_TOKENS = 2200
SECONDS = {"start": 5, "prompt": 2, "stop": 2, "end": 2, "report": 60, "send": 60}
UNFINISHED_AFTER = 3600
FORGOTTEN_AFTER = 14 * 24 * 3600
MAX_TASK = 3000
NEW_SESSION = getattr(subprocess, "CREATE_NO_WINDOW", 0) | getattr(
    subprocess, "CREATE_NEW_PROCESS_GROUP", 0
)
"""What `start_new_session` is on Windows: a console of its own, which nobody sees or closes."""


def main(event: str, *arguments: str) -> None:
    """Run one hook; `report` and `send` are the work of the detached child."""
    if event == "report":
        report(Session(arguments[0]), is_final=arguments[1:] == ("final",))
        return send()
    if event == "send":
        return send()
    # As bytes: UTF-8 also where the locale is another, as on Windows.
    given = json.loads(sys.stdin.buffer.read() or b"{}")
    session = Session(str(given.get("session_id") or given.get("conversation_id") or ""))
    if event == "start":
        start(session, given)
    elif event == "prompt":
        remember_prompt(session, given)
    elif event == "stop":
        said = given.get("last_assistant_message") or given.get("prompt_response")
        session.update(last_message=said)
        detach("report", session.name)
    elif event == "end":
        session.update(ended=True)
        detach("report", session.name, "final")
    return None


def start(session: Session, given: dict[str, Any]) -> None:
    """Put the advice before the model; and send what an earlier session could not."""
    settings = load_settings(given.get("cwd"))
    if not settings.playbook:
        raise NotConfigured("set ACE_PLAYBOOK to a playbook of yours, or run: ace connect")
    detach("send")
    read = Api(settings, seconds=3).read(settings.playbook, max_tokens=ROOM_TOKENS)
    session.update(
        playbook=read["id"],
        serving_id=read["serving_id"],
        bullets=re.findall(r"\[([a-z]{2,8}-\d{5,7})\]", read["content"]),
        transcript=given.get("transcript_path"),
        folder=given.get("cwd"),
        commit=commit_of("HEAD", given.get("cwd")),
    )
    answer: dict[str, Any] = {"additional_context": advice(read)}
    if "CURSOR_VERSION" not in os.environ:
        context = {"hookEventName": "SessionStart", "additionalContext": advice(read)}
        answer = {"hookSpecificOutput": context}
    print(json.dumps(answer), flush=True)


def advice(read: dict[str, Any]) -> str:
    """What the model gets to see."""
    missing = ", ".join(read.get("left_out", ()))
    more = f"\n\nDid not fit: {missing}. get_playbook of the MCP server reads all."
    return (
        f"Advice from the playbook “{read['name']}” (version {read['version']}), learned from"
        " earlier tasks. What your user tells you comes first. When a bullet helped, name its id"
        " in your answer, such as [str-00001]; when one misled you, write “misled by [str-00001]”."
        " The outcome is reported when the task ends, judged by your last test, build or lint run;"
        f" call report_outcome yourself only to judge it better (playbook_id {read['id']},"
        f" serving_id {read['serving_id']}).\n\n{read['content']}{more if missing else ''}"
    )


def remember_prompt(session: Session, given: dict[str, Any]) -> None:
    """What the task is, in the user's words."""
    # Gemini CLI puts our own advice before the user's words.
    said = re.sub(
        r"<hook_context>.*?</hook_context>\s*", "", str(given.get("prompt", "")), flags=re.S
    )
    prompts = [*session.state.get("prompts", []), said[:MAX_TASK]]
    session.update(prompts=prompts, transcript=given.get("transcript_path"), ended=False)


def report(session: Session, *, is_final: bool) -> None:
    """Put the outcome of what was asked since the last report into the outbox.

    A turn without a result belongs to a task that goes on, until the session ends.
    """
    # The children of the last turn and of the session's end come together.
    with locked(session.path.with_suffix(".lock")):
        session.load()
        state, prompts = session.state, session.state.get("prompts", [])
        done = state.get("reported", 0)
        if not state.get("playbook") or len(prompts) <= done:
            return
        facts = facts_of(state.get("transcript"), since=done)
        facts.hear(state.get("last_message") or "")
        if not (is_final or facts.is_conclusive or facts.reported_by_model):
            return
        if not facts.reported_by_model:
            outcome = outcome_of(facts, state, prompts[done:])
            outcome["idempotency_key"] = f"hook-{session.name}-{len(prompts)}"
            Outbox(outbox_folder()).put(state["playbook"], outcome)
        session.update(reported=len(prompts), last_message="")


def outcome_of(facts: Facts, state: dict[str, Any], prompts: list[str]) -> dict[str, Any]:
    """The report, as the API takes it."""
    known = state["bullets"]
    misled = [bullet for bullet in dict.fromkeys(facts.misled) if bullet in known]
    cited = [bullet for bullet in dict.fromkeys(facts.cited) if bullet in known]
    commit = commit_of("HEAD", state.get("folder"))
    return {
        "task_description": mask(" / ".join(prompts))[:MAX_TASK] or "(no text)",
        "outcome": facts.outcome,
        "signal": facts.signal,
        "notes": f"Reported by the hook of {facts.client}: {facts.why}",
        "reasoning_trace": "" if os.environ.get("ACE_TRACE") == "0" else facts.trace,
        "bullet_ids": cited,
        "harmful_bullet_ids": misled,
        "serving_id": state["serving_id"],
        # Its own commit, for CI to say later how it went.
        "ref": commit if commit != state.get("commit", commit) else "",
    }


def send() -> None:
    """Send what waits, and the reports of sessions that were cut off."""
    for session in unfinished_sessions():
        report(session, is_final=True)
    for message in Outbox(outbox_folder()).send(Api(load_settings(), seconds=30)):
        print(f"ace: a report was refused: {message}", file=sys.stderr)


def detach(*arguments: str) -> None:
    """Start this module again in a session of its own, where nobody cancels it."""
    log = folder() / "hooks.log"
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    source = str(Path(__file__).resolve().parents[1])
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as errors:
        subprocess.Popen(  # noqa: S603 - this very program
            [sys.executable, "-m", "ace.hooks", *arguments],
            env={**os.environ, "PYTHONPATH": source},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            creationflags=NEW_SESSION,
        )


class Session:
    """What a session read and was asked, in a file that only its user can read."""

    def __init__(self, name: str) -> None:
        self.name = re.sub(r"[^0-9A-Za-z-]", "", name)[:80] or "unknown"
        self.path = folder() / "sessions" / f"{self.name}.json"
        self.load()

    def load(self) -> None:
        try:
            self.state: dict[str, Any] = json.loads(self.path.read_text())
        except (OSError, ValueError):
            self.state = {}

    def update(self, **values: Any) -> None:
        self.state |= {name: value for name, value in values.items() if value is not None}
        write_private(self.path, json.dumps(self.state))

    def is_due(self, age: float) -> bool:
        """Something was asked, is not reported, and the session is over."""
        waits = len(self.state.get("prompts", [])) > self.state.get("reported", 0)
        return waits and (bool(self.state.get("ended")) or age > UNFINISHED_AFTER)


def unfinished_sessions() -> list[Session]:
    """Sessions that ended without a report: the machine stopped, or the program was killed."""
    found = []
    for path in sorted((folder() / "sessions").glob("*.json")):
        age = time.time() - path.stat().st_mtime
        if age > FORGOTTEN_AFTER:
            path.unlink(missing_ok=True)
            path.with_suffix(".lock").unlink(missing_ok=True)
        elif (session := Session(path.stem)).is_due(age):
            found.append(session)
    return found


def folder() -> Path:
    """Where the program lets its plugins keep files, else a cache folder."""
    given = os.environ.get("CLAUDE_PLUGIN_DATA") or os.environ.get("PLUGIN_DATA")
    return Path(given) if given else Path.home() / ".cache" / "ace"


def outbox_folder() -> Path:
    return folder() / "outbox"


def too_late(*_: Any) -> None:
    raise TimeoutError("timed out")


def run(arguments: list[str]) -> None:
    """Run a hook within its time; a failure is one line on stderr and no exit status."""
    event = arguments[0] if arguments else ""
    try:
        if hasattr(signal, "SIGALRM"):  # urllib's own time-out is per read
            signal.signal(signal.SIGALRM, too_late)
            signal.alarm(SECONDS.get(event, 1))
        main(*arguments)
    except Exception as error:  # noqa: BLE001 - an agent's session must never fail because of us
        late = isinstance(error, TimeoutError)
        text = "timed out" if late else mask(str(error)) or type(error).__name__
        print(f"ace: {text}"[:300], file=sys.stderr)


if __name__ == "__main__":
    run(sys.argv[1:])
