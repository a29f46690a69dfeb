"""The command `ace`."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ace import bridge, ci, connect, hooks
from ace.api import Api, Refused
from ace.outbox import Outbox
from ace.settings import NotConfigured, commit_of, load_settings, user_file


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 1 when it failed, with one line on stderr."""
    given = parser().parse_args(arguments)
    for stream in (sys.stdin, sys.stdout):
        if isinstance(stream, io.TextIOWrapper):  # Windows has another encoding for pipes
            stream.reconfigure(encoding="utf-8")
    try:
        return int(given.run(given) or 0)
    except (Refused, NotConfigured, OSError) as error:
        print(f"ace: {error}", file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser("ace", description="Playbooks for AI agents.")
    commands = whole.add_subparsers(required=True, metavar="command")

    def command(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(run=run)
        return added

    one = command("connect", connect.run, "Log in and connect the agent programs on this machine.")
    one.add_argument("--url", default="", help="the server")
    one.add_argument("--key", default="", help="an API key, instead of a login in the browser")
    one.add_argument("--playbook", default="", help="playbook for this folder, by id or name")
    one.add_argument("--yes", action="store_true", help="write without asking")
    one.add_argument("--undo", action="store_true", help="restore every file")
    one = command("import", import_text, "Create a playbook from a text such as AGENTS.md.")
    one.add_argument("file", type=Path)
    one.add_argument("--name", default="")
    one = command("read", read, "Print the advice for this folder.")
    one.add_argument("playbook", nargs="?", default="")
    one.add_argument("--task", default="")
    one.add_argument("--max-tokens", type=int, default=None)
    one = command("report", report, "Report the outcome of a task.")
    one.add_argument("outcome", choices=("success", "failure", "partial"))
    one.add_argument("--task", default="")
    one.add_argument(
        "--ref", default="", help="commit, pull request or run; without --task: correct its reports"
    )
    one.add_argument("--notes", default="")
    one.add_argument("--bullets", nargs="*", default=[])
    one.add_argument("--serving-id", default="")
    one.add_argument("--signal", default="human", choices=("human", "test", "ground_truth"))
    one.add_argument("--playbook", default="")
    one = command("ci", ci.run, "Correct the reports of a commit from a GitHub Actions run.")
    one.add_argument("status", help="status of the job")
    command("status", status, "Show the server, this folder's playbook and unsent reports.")
    command("doctor", doctor, "Check settings, server, playbook and programs.")
    command(
        "mcp",
        lambda given: bridge.serve(Api(load_settings(), seconds=60), sys.stdin, sys.stdout),
        "Serve MCP on stdin and stdout.",
    )
    one = command(
        "hook",
        lambda given: hooks.run([given.event, *given.more]),
        "Run a hook for an agent program.",
    )
    one.add_argument("event")
    one.add_argument("more", nargs="*")
    return whole


def playbook_of(api: Api, name: str) -> str:
    wanted = name or api.settings.playbook
    if not wanted:
        raise NotConfigured("name a playbook, or run: ace connect")
    return wanted


def import_text(given: argparse.Namespace) -> None:
    name = given.name or f"{Path.cwd().name}: {given.file.name}"
    text = given.file.read_text(encoding="utf-8")
    made = connect.with_write(lambda api: api.call("create_playbook", name=name, content=text))
    print(f"{made['name']}: {made['id']}")


def read(given: argparse.Namespace) -> None:
    api = Api(load_settings())
    found = api.read(playbook_of(api, given.playbook), task=given.task, max_tokens=given.max_tokens)
    print(f"{found['content']}\nserving_id {found['serving_id']}")


def report(given: argparse.Namespace) -> None:
    api = Api(load_settings())
    ref = commit_of(given.ref) or given.ref if given.ref else ""
    if ref and not given.task:
        for row in api.correct(ref, given.outcome, given.notes):
            print(row["id"])
        return
    if not given.task:
        raise NotConfigured("describe the task with --task, or give the --ref of an earlier report")
    outcome = {
        "task_description": given.task, "outcome": given.outcome,
        "notes": given.notes, "bullet_ids": given.bullets, "serving_id": given.serving_id,
        "signal": given.signal, "ref": ref,
    }  # fmt: skip
    playbook = api.read(playbook_of(api, given.playbook), max_tokens=1)["id"]
    stored = api.report(playbook, outcome)
    for warning in stored.get("warnings", ()):
        print(f"ace: {warning}", file=sys.stderr)
    print(stored["outcome_id"])


def status(given: argparse.Namespace) -> None:
    settings = load_settings()
    print(f"server    {settings.url} ({'key' if settings.key else 'login'})")
    print(f"playbook  {settings.playbook or 'none for this folder: ace connect'}")
    for folder in (hooks.outbox_folder(), user_file().parent / "outbox"):
        for path in Outbox(folder).waiting():
            print(f"waiting   {path}")


def doctor(given: argparse.Namespace) -> int:
    """0 if a task in this folder would be read and reported."""
    failed = 0
    for name, check in connect.CHECKS.items():
        try:
            print(f"ok      {name}: {check()}")
        except (Refused, NotConfigured, OSError, LookupError) as error:
            failed += 1
            print(f"FAILED  {name}: {error}")
    return min(failed, 1)
