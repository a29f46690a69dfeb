"""Builds the environment that a command's option names."""

import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass

from evolution.engine.adaptation.datasets import kind_of
from evolution.engine.environments import (
    AnswerMatch,
    Environment,
    Feedback,
    FunctionEnvironment,
    ListMatch,
    NumberMatch,
    ProgramEnvironment,
    Sample,
    evaluate_sample,
)
from evolution.engine.generator import Generation

HELP = (
    "who says what is right: `auto` (by the targets), `answer`, `exact`, `number`, `list`, "
    "`call:package.module:function`, or `run:program arguments` (no shell; JSON on stdin)"
)


VERDICTS = {
    "success": "The answer is right.",
    "failure": "The answer is wrong.",
    "partial": "The answer is partly right.",
}


@dataclass(frozen=True)
class WithholdingEnvironment:
    """Another environment's verdict and score, without its words and without the truth."""

    environment: Environment

    def evaluate(self, sample: Sample, generation: Generation) -> Feedback:
        found = evaluate_sample(self.environment, sample, generation)
        return Feedback(status=found.status, score=found.score, message=VERDICTS[found.status])


def environment_for(
    name: str, samples: Sequence[Sample], *, reveal: bool, seconds: float
) -> Environment:
    """The environment; ValueError when there is none of that name."""
    if name == "auto":
        name = kind_of(samples)
    if name.startswith("call:"):
        function = _function(name.removeprefix("call:"))
        return function if reveal else WithholdingEnvironment(function)
    if name.startswith("run:"):
        program = _program(name.removeprefix("run:"), seconds)
        return program if reveal else WithholdingEnvironment(program)
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


def _function(path: str) -> FunctionEnvironment:
    try:
        return FunctionEnvironment.at(path)
    except ValueError:
        raise
    except Exception as error:  # noqa: BLE001 - other people's module, which may raise anything
        raise ValueError(
            f"The module of {path!r} cannot be imported: {type(error).__name__}: {error}"
        ) from None


def _program(line: str, seconds: float) -> ProgramEnvironment:
    command = shlex.split(line)
    if not command:
        raise ValueError("Name a program after `run:`.")
    if shutil.which(command[0]) is None:
        raise ValueError(f"There is no program {command[0]!r} that can be run.")
    return ProgramEnvironment(command, seconds=seconds)
