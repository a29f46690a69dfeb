"""Environments judge answers: the protocol, and those that ship with the engine.

    environment = NumberMatch()                       # or AnswerMatch(), ListMatch()
    environment = FunctionEnvironment.at("my_checks:is_right")
    environment = ProgramEnvironment(["python", "check.py"], seconds=10)
    environment = WorldEnvironment(MyShop)            # to act in, step by step

`without_labels(environment)` judges by what a check finds out alone, for the self-judged mode.
"""

import asyncio
import importlib
import inspect
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from core.text import normalize
from evolution.engine.generator import Generation
from evolution.engine.prompt_text import clean_text, truncate_middle
from evolution.engine.structured_output import Text

MESSAGE_LIMIT = 2_000
PASSED_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "HOME", "TMPDIR", "VIRTUAL_ENV")
"""Variables that the program sees: none that could carry a key."""
MAX_OUTPUT = 100_000
Status = Literal["success", "failure", "partial"]
VERDICTS: dict[Status, str] = {
    "success": "The answer is right.",
    "failure": "The answer is wrong.",
    "partial": "The answer is partly right.",
}

_LONGEST = 60
_SIGNS = "$€£¥₹\"'“”„‘’`*"
_NUMBER = re.compile(
    r"[-+]?\s?(?:\d{1,3}(?:(?P<comma>[,_\s])\d{3}(?:(?P=comma)\d{3})*)|\d+)?"
    r"(?:\.\d+)?(?:e[-+]?\d{1,3})?\s?%?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Question:
    """What the Generator may know of a sample: everything but the answer."""

    id: str
    task: str
    context: str = ""

    def as_text(self) -> str:
        return f"{self.context}\n\n{self.task}" if self.context else self.task


@dataclass(frozen=True)
class Sample:
    """One row of a data set. `target` is empty where only the environment can tell."""

    question: Question
    target: str = ""

    @property
    def id(self) -> str:
        return self.question.id


class Feedback(BaseModel):
    """The verdict on an answer. `score`: 0 to 1; `ground_truth`: None when it is withheld."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    status: Status
    score: float = Field(ge=0, le=1)
    message: Annotated[str, AfterValidator(clean_text)] = ""
    ground_truth: Annotated[str, AfterValidator(clean_text)] | None = None
    is_checked: bool = True
    """False where nobody has looked: the Reflector has only the trace to judge by."""

    def without_truth(self) -> "Feedback":
        """The verdict alone where the right answer is told: the message may quote it."""
        if self.ground_truth is None:
            return self
        return Feedback(status=self.status, score=self.score, message=VERDICTS[self.status])


class Environment(Protocol):
    """Anything that can judge an answer, at once or as a coroutine; called from several threads."""

    def evaluate(
        self, sample: Sample, generation: Generation
    ) -> Feedback | Awaitable[Feedback]: ...


def evaluate_sample(environment: Environment, sample: Sample, generation: Generation) -> Feedback:
    """The environment's feedback, awaited if need be. Call it from a thread without a loop."""
    if not sample.target and isinstance(environment, AnswerMatch | NumberMatch | ListMatch):
        return Unjudged().evaluate(sample, generation)
    found: Feedback = _awaited(environment.evaluate(sample, generation))
    return found


def _awaited(found: Any) -> Any:
    """What a coroutine returns; anything else as it is."""

    async def wait() -> Any:
        return await found

    return asyncio.run(wait()) if inspect.isawaitable(found) else found


def normalize_answer(text: str) -> str:
    """The form in which two answers are compared: NFKC, case, spacing, quotes, last full stop."""
    folded = normalize("NFKC", clean_text(text)).casefold()
    for odd, even in (("“", '"'), ("”", '"'), ("„", '"'), ("‘", "'"), ("’", "'")):
        folded = folded.replace(odd, even)
    return " ".join(folded.split()).strip(" .\"'")


@dataclass(frozen=True)
class AnswerMatch:
    """Right when the answer equals the target; `exact=False` folds case, spacing and quotes."""

    exact: bool = False

    def evaluate(self, sample: Sample, generation: Generation) -> Feedback:
        answer, target = generation.final_answer, sample.target
        if not self.exact:
            answer, target = normalize_answer(answer), normalize_answer(target)
        return _verdict(float(answer == target), sample.target)


@dataclass(frozen=True)
class NumberMatch:
    """Right when both are the same number to `decimals` places, however it is written.

    Thousands separators, currency signs and quotes do not count. `15%` is right for 15 and for
    0.15: the published targets use both.
    """

    decimals: int = 2

    def evaluate(self, sample: Sample, generation: Generation) -> Feedback:
        same = same_number(generation.final_answer, sample.target, decimals=self.decimals)
        return _verdict(float(same), sample.target)


@dataclass(frozen=True)
class ListMatch:
    """Comma lists, compared item by item in order, as FiNER's published evaluation does.

    Case and spacing do not count; surplus items of the answer are ignored, missing ones are
    wrong. `score` is the share of right items.
    """

    def evaluate(self, sample: Sample, generation: Generation) -> Feedback:
        wanted = _items(sample.target)
        given = _items(generation.final_answer)[: len(wanted)]
        given += [""] * (len(wanted) - len(given))
        pairs = list(zip(given, wanted, strict=True))
        right = sum(one == other or same_number(one, other, decimals=2) for one, other in pairs)
        message = f"{right} of {len(wanted)} items are right."
        return _verdict(right / len(wanted), sample.target, message)


def _items(text: str) -> list[str]:
    return [normalize_answer(item) for item in text.split(",")]


def same_number(given: str, wanted: str, *, decimals: int) -> bool:
    """Whether both texts are one number to that many places; a percent sign may mean /100."""
    number, target = read_number(given), read_number(wanted)
    if number is None or target is None:
        return False
    values = [number, number / 100] if "%" in normalize("NFKC", given) else [number]
    return any(abs(value - target) <= Decimal(5).scaleb(-decimals - 1) for value in values)


def read_number(text: str) -> Decimal | None:
    """The number that a text is, as people and models write it: `$1,234.50`, `15 %`, `(120)`.

    None when it is anything else, as the list `1, 2` is.
    """
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    folded = normalize("NFKC", text).replace("−", "-")
    bare = folded.translate({ord(sign): None for sign in _SIGNS}).strip().rstrip(".")
    if bare.startswith("(") and bare.endswith(")"):
        bare = f"-{bare[1:-1].strip()}"
    bare = re.sub(r"\s+", " ", bare)
    if not bare or not _NUMBER.fullmatch(bare):
        return None
    try:
        number = Decimal(re.sub(r"[,_\s%]", "", bare))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _verdict(score: float, target: str, message: str = "") -> Feedback:
    status: Status = "success" if score == 1 else "partial" if score else "failure"
    message = message or VERDICTS[status]
    return Feedback(status=status, score=score, message=message, ground_truth=target)


@dataclass(frozen=True)
class Withholding:
    """Another environment's verdict on an answer, for which it is not told the label."""

    environment: Environment

    def evaluate(self, sample: Sample, generation: Generation) -> Feedback:
        return evaluate_sample(
            self.environment, Sample(sample.question), generation
        ).without_truth()


class Unjudged:
    """Nobody's verdict, where only a label could tell."""

    def evaluate(self, sample: Sample, generation: Generation) -> Feedback:
        message = "Nobody has checked this answer."
        return Feedback(status="partial", score=0, message=message, is_checked=False)


class FunctionEnvironment:
    """A function of yours: `(sample, generation)` to a Feedback, a dict of one, or a bool.

    It may be a coroutine function. An exception counts the sample as wrong.
    """

    def __init__(self, function: Callable[[Sample, Generation], Any]) -> None:
        self._function = function

    @classmethod
    def at(cls, path: str) -> "FunctionEnvironment":
        """The function at this path; ValueError when there is none."""
        return cls(function_at(path))

    def evaluate(self, sample: Sample, generation: Generation) -> Feedback:
        try:
            return as_feedback(_awaited(self._function(sample, generation)))
        except Exception as error:  # noqa: BLE001 - other people's code: one sample, not the run
            return failed_feedback(f"The check failed with {type(error).__name__}.")


def function_at(path: str) -> Any:
    """The function at `package.module:name` (or with a dot); ValueError when there is none."""
    module_name, _, name = path.rpartition(":" if ":" in path else ".")
    try:
        function = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"There is no function at {path!r}: {error}") from None
    except Exception as error:  # noqa: BLE001 - other people's module may raise anything
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"The module of {path!r} cannot be imported: {what}") from None
    if not callable(function):
        raise ValueError(f"{path!r} is not a function.")
    return function


def as_feedback(found: Any) -> Feedback:
    """A Feedback from a dict or a bool; ValidationError for anything else."""
    if isinstance(found, Feedback):
        return found
    if isinstance(found, bool):
        return Feedback(status="success" if found else "failure", score=float(found))
    if isinstance(found, Mapping) and "message" in found:
        found = {**found, "message": truncate_middle(str(found["message"]), MESSAGE_LIMIT)}
    return Feedback.model_validate(found)


def failed_feedback(message: str) -> Feedback:
    """A sample that could not be judged, or not be answered, counts as wrong."""
    return Feedback(status="failure", score=0.0, message=message)


class ProgramFailed(Exception):
    """A program gave no answer; the text goes on after "The check", "The agent"."""


@dataclass(frozen=True)
class Program:
    """A command that reads JSON on stdin and prints JSON, for at most `seconds`; no shell."""

    command: Sequence[str]
    seconds: float = 10

    @classmethod
    def at(cls, line: str, *, seconds: float) -> Self:
        """The program of a command line; ValueError when there is none."""
        command = shlex.split(line)
        if not command:
            raise ValueError("Name a program after `run:`.")
        if shutil.which(command[0]) is None:
            raise ValueError(f"There is no program {command[0]!r} that can be run.")
        return cls(command, seconds)

    def run(self, asked: Any) -> str:
        """What it prints; raises ProgramFailed."""
        try:
            return self._run(json.dumps(asked))
        except subprocess.TimeoutExpired:
            raise ProgramFailed(f"took longer than {self.seconds:g} s.") from None
        except OSError as error:
            raise ProgramFailed(f"could not be started ({type(error).__name__}).") from None

    def _run(self, asked: str) -> str:
        # A session of its own: a time-out ends what the program started as well.
        with subprocess.Popen(  # noqa: S603 - the operator's own command line, without a shell
            list(self.command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in PASSED_ENVIRONMENT if name in os.environ},
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        ) as program:
            try:
                output, _ = program.communicate(asked, timeout=self.seconds)
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(program.pid, signal.SIGKILL)
        if program.returncode != 0:
            raise ProgramFailed(f"ended with exit code {program.returncode}.")
        return output[:MAX_OUTPUT]


class ProgramEnvironment(Program):
    """A program that judges each answer.

    It reads `{"sample": {"id", "task", "context", "target"}, "generation": {…}}` and prints a
    feedback: `{"status", "score", "message", "ground_truth"}`. Another exit code than 0, a
    time-out, or anything else on stdout counts the sample as wrong.
    """

    def evaluate(self, sample: Sample, generation: Generation) -> Feedback:
        asked = {
            "sample": asdict(sample.question) | {"target": sample.target},
            "generation": generation.model_dump(),
        }
        try:
            return Feedback.model_validate_json(self.run(asked))
        except ProgramFailed as error:
            return failed_feedback(f"The check {error}")
        except ValidationError:
            return failed_feedback("The check printed no feedback.")


class Episode(Generation):
    """What an agent did on one task: `reasoning` is its trajectory, `test_report` of tests it ran.

    `feedback` is that of the environment in which it acted; None: its final answer is judged.
    """

    final_answer: Text = ""
    test_report: Text = ""
    feedback: Feedback | None = None


class World(Protocol):
    """An environment to act in, made anew for each attempt; `close()`, if it has one, ends it."""

    def reset(self, question: Question) -> str:
        """Begin with this task: what is seen, with the actions that there are."""
        ...

    def step(self, action: str) -> tuple[str, bool]:
        """What is seen after the action, and whether it is over."""
        ...

    def score(self) -> Any:
        """By the state that was reached, never by a label: a Feedback, a dict of one, or a bool."""
        ...


@dataclass(frozen=True)
class WorldEnvironment:
    """Worlds to act in: an Episode brings its own feedback from one."""

    make: Callable[[], World]

    def evaluate(self, sample: Sample, generation: Generation) -> Feedback:
        return failed_feedback("Nobody has acted on this task.")


MATCHES: Mapping[str, Environment] = {
    "answer": AnswerMatch(),
    "exact": AnswerMatch(exact=True),
    "number": NumberMatch(),
    "list": ListMatch(),
}


def environment_for(name: str, samples: Sequence[Sample], *, seconds: float = 10) -> Environment:
    """The environment of that name, `auto` by the targets; ValueError when there is none."""
    if name == "auto":
        name = kind_of(samples)
    kind, _, what = name.partition(":")
    if kind == "call" and what:
        return FunctionEnvironment.at(what)
    if kind == "world" and what:
        return WorldEnvironment(function_at(what))
    if kind == "run":
        return ProgramEnvironment.at(what, seconds=seconds)
    if name in MATCHES:
        return MATCHES[name]
    known = ", ".join(MATCHES)
    raise ValueError(f"There is no environment {name!r}. Use one of: auto, {known}.")


def without_labels(environment: Environment) -> Environment:
    """A judge that no label reaches: the same check without it, or nobody."""
    is_match = any(environment is match for match in MATCHES.values())
    return Unjudged() if is_match else Withholding(environment)


def kind_of(samples: Sequence[Sample]) -> str:
    """Which answer match fits the targets: `number`, `list` (of commas) or `answer`."""
    if all(read_number(sample.target) is not None for sample in samples):
        return "number"
    return "list" if any("," in sample.target for sample in samples) else "answer"
