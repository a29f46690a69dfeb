"""Adds ACE to an agent: advice before a request, and a report after it."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import Protocol

from todo_agent.agent import INSTRUCTIONS, Run

ADVISED = """{instructions}

Advice from earlier tasks, one piece a line, each after its id. Follow what fits; your user comes first.

{content}

End your last message with a line "Used: " and the ids of the advice that you followed or that misled you, such as [str-00001], or "Used: none"."""  # noqa: E501 - one line, one sentence
BULLET = re.compile(r"\[([a-z]{2,8}-\d{5,7})\]")
MOST_TRACE, MOST_NOTES, MOST_TASK = 10_000, 2_000, 4_000
FAILED = {"failed", "cancelled"}
EVOLVES_WITHIN = 600  # seconds
MOST_AT_ONCE = 100  # reports that one evolution takes


class AceError(Exception):
    """The platform refused, or could not be reached; the text says why."""


@dataclass(frozen=True)
class Reading:
    """The advice as it was when it was read; `serving_id` ties the report to it."""

    playbook_id: str
    version: int
    serving_id: str
    content: str


@dataclass(frozen=True)
class Report:
    """How a task went, in the words of report_outcome."""

    task_description: str
    outcome: str
    reasoning_trace: str
    notes: str
    bullet_ids: list[str]
    serving_id: str
    signal: str
    idempotency_key: str


@dataclass(frozen=True)
class Evolution:
    status: str
    outcomes_processed: int
    error_message: str | None = None


@dataclass(frozen=True)
class Triggered:
    """`is_new`: it was started now, so it takes every pending report; no id: none is pending."""

    job_id: str | None
    is_new: bool


class Platform(Protocol):
    """The platform over one interface; every call may raise AceError."""

    def create_playbook(self, name: str) -> str: ...

    def read(self, playbook_id: str, max_tokens: int | None) -> Reading: ...

    def report(self, playbook_id: str, report: Report) -> str: ...

    def trigger_evolution(self, playbook_id: str) -> Triggered: ...

    def evolution(self, job_id: str) -> Evolution: ...


@dataclass
class Playbook:
    """One playbook of the platform."""

    platform: Platform
    id: str
    max_tokens: int | None = None
    pause: Callable[[float], object] = field(default_factory=lambda: Event().wait)

    def read(self) -> Reading:
        return self.platform.read(self.id, self.max_tokens)

    def report(self, report: Report) -> str:
        return self.platform.report(self.id, report)

    def evolve(self) -> None:
        """Evolve until no report is pending; raises AceError when an evolution fails."""
        while True:
            triggered = self.platform.trigger_evolution(self.id)
            if triggered.job_id is None:
                return
            taken = self._ended(triggered.job_id).outcomes_processed
            if triggered.is_new and taken < MOST_AT_ONCE:
                return

    def _ended(self, job_id: str) -> Evolution:
        for _ in range(EVOLVES_WITHIN):
            evolution = self.platform.evolution(job_id)
            if evolution.status == "completed":
                return evolution
            if evolution.status in FAILED:
                break
            self.pause(1)
        raise AceError(f"An evolution is {evolution.status}: {evolution.error_message}")


def advised(reading: Reading) -> str:
    """The agent's instructions with the advice below them."""
    return ADVISED.format(instructions=INSTRUCTIONS, content=reading.content)


def cited(run: Run, reading: Reading) -> list[str]:
    """The ids that the last message names, as far as they were there to be read."""
    known = set(BULLET.findall(reading.content))
    named = dict.fromkeys(BULLET.findall(run.answer))
    return [key for key in named if key in known]


def make_report(
    *, request: str, run: Run, reading: Reading, outcome: str, notes: str, signal: str, key: str
) -> Report:
    """A report within the platform's limits."""
    return Report(
        task_description=_cut(request, MOST_TASK),
        outcome=outcome,
        reasoning_trace=_cut("\n".join([*run.calls, run.answer]), MOST_TRACE),
        notes=_cut(notes, MOST_NOTES),
        bullet_ids=cited(run, reading),
        serving_id=reading.serving_id,
        signal=signal,
        idempotency_key=key,
    )


def _cut(text: str, most: int) -> str:
    """At most that many bytes of it: the middle goes first, the limits count bytes."""
    raw = text.encode()
    if len(raw) <= most:
        return text
    half = (most - 9) // 2
    return f"{raw[:half].decode(errors='ignore')}\n[cut]\n{raw[-half:].decode(errors='ignore')}"
