"""A task with a playbook: read the advice before it, report the outcome after it.

    with ace.task("Fix the flaky login test") as task:
        answer = agent.run(task.advice)
        task.check(run_the_tests())        # the truth: reported as success or failure

    @ace.learn(playbook="Coding agent")
    def solve(issue, advice=""): ...

Without a `check` nothing shows whether it worked: the outcome is `partial`, after an exception
`failure`. A server that is away costs the advice and nothing else; the report waits in a file.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import uuid
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from ace.api import Api, Refused
from ace.outbox import Outbox
from ace.settings import NotConfigured, load_settings, user_file
from ace.transcripts import mask

logger = logging.getLogger("ace")
PREFACE = (
    "Advice that earlier agents learned from their outcomes. Your user's instructions come first."
    " When a bullet helped, name its id in your answer, such as [str-00001]; when one misled you,"
    " write “misled by [str-00001]”."
)
F = TypeVar("F", bound=Callable[..., Any])


class Task:
    """One task; use it with `with` or `async with`."""

    def __init__(self, description: str, *, playbook: str = "", max_tokens: int = 2000) -> None:
        self.description, self.playbook, self.max_tokens = description, playbook, max_tokens
        self.advice = self.serving_id = self.playbook_id = ""
        self.outcome, self.signal = "partial", "self_report"
        self.used_bullets: list[str] = []
        self.misleading_bullets: list[str] = []
        self.notes: list[str] = []

    def check(self, passed: bool, *, signal: str = "ground_truth") -> None:
        """Say whether it worked, from a check that knows: `test`, `human` or `ground_truth`."""
        self.outcome, self.signal = "success" if passed else "failure", signal

    def used(self, *bullets: str) -> None:
        """The ids of bullets that helped."""
        self.used_bullets += bullets

    def misled(self, *bullets: str) -> None:
        """The ids of bullets that misled."""
        self.misleading_bullets += bullets

    def note(self, text: str) -> None:
        """What helps next time; a line `Lesson: …` is nearly always understood."""
        self.notes.append(text)

    def hear(self, answer: str) -> None:
        """Take the bullets that an agent's answer names, as the hooks do."""
        from ace.transcripts import Facts  # noqa: PLC0415 - most tasks have no answer to read

        facts = Facts()
        facts.hear(answer)
        self.used(*(bullet for bullet in facts.cited if f"[{bullet}]" in self.advice))
        self.misled(*(bullet for bullet in facts.misled if f"[{bullet}]" in self.advice))

    def conclude(self, answer: Any, check: Callable[[Any], bool] | None) -> None:
        """Take in an agent's answer: the bullets that its text names, and what a check says."""
        self.hear(answer if isinstance(answer, str) else str(answer))
        if check is not None:
            self.check(bool(check(answer)))

    @property
    def instructions(self) -> str:
        """The advice as a part of an agent's instructions; empty without advice."""
        return f"{PREFACE}\n\n{self.advice}" if self.advice else ""

    def __enter__(self) -> Task:
        try:
            settings = load_settings()
            read = Api(settings).read(
                self.playbook or settings.playbook,
                max_tokens=self.max_tokens,
                task=self.description,
            )
        except (Refused, NotConfigured, OSError) as error:
            logger.warning("No advice for this task: %s", error)
            return self
        self.advice, self.serving_id, self.playbook_id = (
            read["content"],
            read["serving_id"],
            read["id"],
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and self.outcome == "partial":
            self.outcome = "failure"
            self.note(f"It ended with {kind.__name__}.")
        if not self.playbook_id:
            return
        outbox = Outbox(user_file().parent / "outbox")
        outbox.put(self.playbook_id, self.report())
        try:
            for message in outbox.send(Api(load_settings())):
                logger.warning("A report was refused: %s", message)
        except (Refused, NotConfigured, OSError) as failure:
            logger.warning("The report waits in %s: %s", outbox.folder, failure)

    async def __aenter__(self) -> Task:
        return await asyncio.to_thread(self.__enter__)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.__exit__, kind, error, trace)

    def report(self) -> dict[str, Any]:
        """The arguments of report_outcome."""
        return {
            "task_description": mask(self.description)[:3000] or "(no text)",
            "outcome": self.outcome,
            "signal": self.signal,
            "notes": mask("\n".join(self.notes))[:1800],
            "bullet_ids": list(dict.fromkeys(self.used_bullets)),
            "harmful_bullet_ids": list(dict.fromkeys(self.misleading_bullets)),
            "serving_id": self.serving_id,
            "idempotency_key": f"task-{uuid.uuid4()}",
        }


def learn(*, playbook: str = "", check: Callable[[Any], bool] | None = None) -> Callable[[F], F]:
    """Run a function, or a coroutine function, as a task; `check` judges what it returns.

    A parameter `advice` gets the playbook's text, a parameter `task` the Task.
    """

    def decorate(function: F) -> F:
        names = inspect.signature(function).parameters
        what = " ".join((inspect.getdoc(function) or function.__name__).split())

        def begin(task: Task, given: dict[str, Any]) -> dict[str, Any]:
            ours = {"advice": task.advice, "task": task}
            return {**{name: ours[name] for name in ours if name in names}, **given}

        def end(task: Task, result: Any) -> Any:
            task.conclude(result, check)
            return result

        @functools.wraps(function)
        def run(*args: Any, **given: Any) -> Any:
            with Task(describe(what, args, given), playbook=playbook) as task:
                return end(task, function(*args, **begin(task, given)))

        @functools.wraps(function)
        async def run_async(*args: Any, **given: Any) -> Any:
            async with Task(describe(what, args, given), playbook=playbook) as task:
                return end(task, await function(*args, **begin(task, given)))

        is_async = inspect.iscoroutinefunction(function)
        return run_async if is_async else run  # type: ignore[return-value]

    return decorate


def describe(what: str, args: tuple[Any, ...], given: dict[str, Any]) -> str:
    """The task in words: what the function is for, and the texts that it is given."""
    texts = [value for value in (*args, *given.values()) if isinstance(value, str)]
    return ": ".join([what, *texts])[:3000]
