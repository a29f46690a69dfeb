"""Compares the same tasks without and with a playbook that learns on others in between."""

import uuid
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from todo_agent.ace import Playbook
from todo_agent.playing import Played, Player
from todo_agent.tasks import KINDS, make_tasks

# Tasks of other seeds: nothing that is measured was there to learn from.
PRACTICE = 1_000_000
Rounds = dict[str, list[Played]]


def play_tasks(
    player: Player,
    playbook: Playbook | None,
    *,
    count: int,
    seed: int,
    tell: Callable[[str], object],
) -> list[Played]:
    """Each task once, in order; every report has a key of this run."""
    run, made = uuid.uuid4().hex, []
    for task in make_tasks(count, seed):
        played = player.play(task, playbook, key=f"todo-{run}-{task.id}")
        tell(f"{task.id:14} {'ok' if played.passed else played.differences[0]}")
        made.append(played)
    return made


def compare(
    player: Player, playbook: Playbook, *, count: int, seed: int, tell: Callable[[str], object]
) -> Rounds:
    """Three rounds: the tasks without ACE; other tasks to learn from; the first ones with ACE."""
    rounds: Rounds = {}
    for name, used, of in (
        ("without", None, seed),
        ("practice", playbook, seed + PRACTICE),
        ("with", playbook, seed),
    ):
        tell(f"\n{name}: {count} tasks of seed {of}")
        rounds[name] = play_tasks(player, used, count=count, seed=of, tell=tell)
        if used:
            tell("evolving …")
            playbook.evolve()
    return rounds


def table(rounds: Rounds) -> str:
    """How many tasks of each kind were done, and what it took, a column for each round."""
    lines = [["", *rounds]]
    for kind in KINDS:
        of_kind = [[row for row in rows if row.kind == kind] for rows in rounds.values()]
        if any(of_kind):
            lines.append([kind, *map(_share, of_kind)])
    lines.append(["all", *map(_share, rounds.values())])
    for unit in ("prompt_tokens", "completion_tokens"):
        lines.append([unit, *(f"{sum(getattr(p, unit) for p in r):,}" for r in rounds.values())])
    return "\n".join(
        f"{first:<18}" + "".join(f"{cell:>12}" for cell in cells) for first, *cells in lines
    )


def as_json(rounds: Rounds, **about: Any) -> dict[str, Any]:
    """Everything that was played, with the ids that lead to the platform's rows."""
    return about | {
        "passed": {name: sum(row.passed for row in rows) for name, rows in rounds.items()},
        "rounds": {name: [asdict(row) for row in rows] for name, rows in rounds.items()},
    }


def _share(rows: list[Played]) -> str:
    return f"{sum(row.passed for row in rows)}/{len(rows)}"
