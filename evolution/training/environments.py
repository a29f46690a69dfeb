"""The environment that a command's option names."""

import shlex
from collections.abc import Sequence

from evolution.engine.adaptation import kind_of
from evolution.engine.environments import (
    AnswerMatch,
    Environment,
    FunctionEnvironment,
    ListMatch,
    NumberMatch,
    Sample,
)
from evolution.engine.programs import ProgramEnvironment

HELP = (
    "who says what is right: `auto` (by the targets), `answer`, `exact`, `number`, `list`, "
    "`call:package.module:function`, or `run:program arguments` (no shell; JSON on stdin)"
)


def environment_for(
    name: str, samples: Sequence[Sample], *, reveal: bool, seconds: float
) -> Environment:
    """The environment; ValueError when there is none of that name."""
    if name == "auto":
        name = kind_of(samples)
    if name.startswith("call:"):
        return FunctionEnvironment.at(name.removeprefix("call:"))
    if name.startswith("run:"):
        command = shlex.split(name.removeprefix("run:"))
        if not command:
            raise ValueError("Name a program after `run:`.")
        return ProgramEnvironment(command, seconds=seconds)
    shipped: dict[str, Environment] = {
        "answer": AnswerMatch(reveal=reveal),
        "exact": AnswerMatch(exact=True, reveal=reveal),
        "number": NumberMatch(reveal=reveal),
        "list": ListMatch(reveal=reveal),
    }
    if name not in shipped:
        raise ValueError(
            f"There is no environment {name!r}. Use one of: auto, {', '.join(shipped)}."
        )
    return shipped[name]
