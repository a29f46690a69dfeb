"""`python -m todo_agent ask|play|compare`; --help says what each takes."""

import argparse
import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

from openai import OpenAI, OpenAIError

from todo_agent.ace import AceError, Playbook, Reading, advised, make_report
from todo_agent.agent import INSTRUCTIONS, run_agent
from todo_agent.compare import Rounds, as_json, compare, play_tasks, table
from todo_agent.playing import Player
from todo_agent.todos import Todo, TodoStore

if TYPE_CHECKING:
    from todo_agent.over_mcp import McpPlatform
    from todo_agent.over_rest import RestPlatform
JUDGED = {"y": "success", "p": "partial", "n": "failure"}


def main() -> None:
    options = parser().parse_args()
    try:
        options.run(options)
    except (AceError, OpenAIError, sqlite3.Error) as error:
        sys.exit(f"todo_agent: {error}")


def parser() -> argparse.ArgumentParser:
    of = os.environ.get
    made = argparse.ArgumentParser(prog="todo_agent", description=__doc__)
    commands = made.add_subparsers(required=True)
    for run, text in (
        (_ask, "do one request on your own list"),
        (_play, "play the tasks of a seed once"),
        (_compare, "play them without, learn, play them with a playbook"),
    ):
        command = commands.add_parser(run.__name__.strip("_"), help=text)
        command.set_defaults(run=run)
        command.add_argument("--ace", choices=["off", "mcp", "rest"], default=of("ACE", "off"))
        command.add_argument("--playbook", metavar="ID", default=of("ACE_PLAYBOOK", ""))
        command.add_argument("--max-tokens", type=int, help="most tokens of advice")
        command.add_argument("--model", default=of("OPENAI_MODEL", "gpt-4o-mini"))
        if run is _ask:
            command.add_argument("request")
            command.add_argument("--db", type=Path, default=Path("todos.sqlite3"))
            command.add_argument("--judge", choices=JUDGED.values(), help="else you are asked")
            continue
        command.add_argument("--tasks", type=int, default=20)
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--out", type=Path, help="write everything as JSON")
        command.add_argument(
            "--review", action="store_true", help="ask the model for a lesson after each failure"
        )
    return made


def _ask(options: argparse.Namespace) -> None:
    """One request on one's own list; with a playbook, one's judgement is the report."""
    request = f"Today is {date.today():%A}, {date.today()}.\n\n{options.request}"
    with _playbook(options) as playbook, OpenAI() as client:
        reading = _read_if_possible(playbook)
        with closing(TodoStore(options.db)) as store:
            run = run_agent(
                client=client,
                model=options.model,
                store=store,
                request=request,
                instructions=advised(reading) if reading else INSTRUCTIONS,
            )
            print(run.answer, *map(_line, store.open()), sep="\n")
        if playbook and reading and (outcome := options.judge or _judged()):
            report = partial(make_report, request=request, run=run, reading=reading, notes="")
            playbook.report(report(outcome=outcome, signal="human", key=f"todo-{uuid4().hex}"))
            print(f"Reported as {outcome}.")


def _play(options: argparse.Namespace) -> None:
    with _playbook(options) as playbook, OpenAI() as client:
        player = Player(client, options.model, options.review)
        played = play_tasks(player, playbook, count=options.tasks, seed=options.seed, tell=_tell)
        _show(options, {options.ace: played}, playbook)


def _compare(options: argparse.Namespace) -> None:
    with _playbook(options) as playbook, OpenAI() as client:
        if playbook is None:
            sys.exit("todo_agent: a comparison needs --ace mcp or --ace rest")
        player = Player(client, options.model, options.review)
        rounds = compare(player, playbook, count=options.tasks, seed=options.seed, tell=_tell)
        _show(options, rounds, playbook)


def _show(options: argparse.Namespace, rounds: Rounds, playbook: Playbook | None) -> None:
    print(f"\n{table(rounds)}")
    about = {"model": options.model, "seed": options.seed, "tasks": options.tasks}
    if playbook:
        about |= {"playbook": playbook.id, "version": playbook.read().version}
        print(f"playbook {playbook.id}, version {about['version']}")
    if options.out:
        options.out.write_text(json.dumps(as_json(rounds, **about), indent=1))


@contextmanager
def _playbook(options: argparse.Namespace) -> Iterator[Playbook | None]:
    """The playbook that was named; a new one where none was. None with ACE off."""
    if options.ace == "off":
        yield None
        return
    with closing(_platform(options.ace)) as platform:
        yield Playbook(platform, options.playbook or _created(platform), options.max_tokens)


def _platform(kind: str) -> "McpPlatform | RestPlatform":
    url = os.environ.get("ACE_URL", "http://127.0.0.1:8000").rstrip("/")
    key = os.environ.get("ACE_API_KEY", "")
    if not key:
        sys.exit("todo_agent: set ACE_API_KEY to a key with the scopes read, write and evolve")
    if kind == "mcp":
        from todo_agent.over_mcp import McpPlatform  # noqa: PLC0415 - two seconds that REST need not pay

        return McpPlatform(url, key)
    from todo_agent.over_rest import RestPlatform  # noqa: PLC0415 - as above

    return RestPlatform(url, key)


def _created(platform: "McpPlatform | RestPlatform") -> str:
    made = platform.create_playbook("Todo agent")
    _tell(f"made the playbook {made}; name it with --playbook to use it again")
    return made


def _read_if_possible(playbook: Playbook | None) -> Reading | None:
    """The advice; nothing, and a line on stderr, when the platform is away: the request goes on."""
    try:
        return playbook.read() if playbook else None
    except AceError as error:
        _tell(f"todo_agent: no advice this time. {error}")
        return None


def _judged() -> str:
    if not sys.stdin.isatty():
        return ""
    return JUDGED.get(input("Was that right? [y]es, [p]artly, [n]o, or nothing: ").lower()[:1], "")


def _line(todo: Todo) -> str:
    return f"{todo.id:4}  {todo.due:10}  {todo.title}"


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
