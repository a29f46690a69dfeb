"""Plays one task: list, agent, check; with a playbook also the advice and the report."""

from contextlib import closing
from dataclasses import dataclass, field

from openai import OpenAI

from todo_agent.ace import Playbook, Reading, advised, make_report
from todo_agent.agent import INSTRUCTIONS, Run, ask_model, run_agent
from todo_agent.tasks import Task, differences
from todo_agent.todos import TodoStore

REVIEW = (
    "An agent that keeps a todo list did not do what was wanted. Say what it should do next time "
    "with another task of this kind: one line that begins with `Lesson: `, general, no names."
)


@dataclass
class Played:
    """The result of one task. Without a playbook the last four fields stay empty."""

    task: str
    kind: str
    passed: bool
    differences: list[str]
    answer: str
    calls: list[str]
    prompt_tokens: int
    completion_tokens: int
    cited: list[str] = field(default_factory=list)
    version: int | None = None
    lesson: str = ""
    outcome_id: str = ""


@dataclass(frozen=True)
class Player:
    """`review`: after a failed task the agent asks its own model for a lesson."""

    client: OpenAI
    model: str
    review: bool = False

    def play(self, task: Task, playbook: Playbook | None = None, *, key: str = "") -> Played:
        """Play the task; with a playbook also report it, once for each key."""
        reading = playbook.read() if playbook else None
        instructions = advised(reading) if reading else INSTRUCTIONS
        with closing(TodoStore(start=task.start)) as store:
            run = run_agent(
                client=self.client,
                model=self.model,
                store=store,
                request=task.request,
                instructions=instructions,
            )
            wrong = differences(task, store)
        played = _played(task, run, wrong)
        if playbook and reading:
            self._report(task, run, played, playbook, reading, key)
        return played

    def _report(
        self, task: Task, run: Run, played: Played, playbook: Playbook, reading: Reading, key: str
    ) -> None:
        if played.differences and self.review:
            played.lesson = self._lesson(task, run, played.differences)
        report = make_report(
            request=task.request,
            run=run,
            reading=reading,
            outcome="success" if played.passed else "failure",
            notes="\n".join([*_check(played), played.lesson]).strip(),
            signal="test",
            key=key,
        )
        played.cited, played.version = report.bullet_ids, reading.version
        played.outcome_id = playbook.report(report)

    def _lesson(self, task: Task, run: Run, wrong: list[str]) -> str:
        story = "\n".join([task.request, "", *run.calls, run.answer, "", *wrong])
        messages = [{"role": "system", "content": REVIEW}, {"role": "user", "content": story}]
        text = (ask_model(self.client, self.model, messages, run).content or "").strip()
        return text.splitlines()[0] if text else ""


def _check(played: Played) -> list[str]:
    if played.passed:
        return ["The check of the list found nothing wrong."]
    return ["The check of the list found:", *(f"- {line}" for line in played.differences)]


def _played(task: Task, run: Run, wrong: list[str]) -> Played:
    return Played(
        task=task.id,
        kind=task.kind,
        passed=not wrong,
        differences=wrong,
        answer=run.answer,
        calls=run.calls,
        prompt_tokens=run.prompt_tokens,
        completion_tokens=run.completion_tokens,
    )
