"""Agents that answer the cases of a playbook by the text that they read."""

from collections.abc import Callable
from typing import Any

from accounts.models import User
from core.security.scopes import Principal
from evolution.outcomes.cases import add_cases, next_case
from playbooks.models import Playbook
from tests.factories import make_outcome

RIGHT, WRONG = "the right answer", "another answer"
Passes = Callable[[str, str], bool]
"""Whether an agent that has read this text answers this question right."""


def give_cases(playbook: Playbook, by: User, number: int = 20, **more: Any) -> None:
    lines = [f'{{"question": "Question {n}?", "target": "{RIGHT}"}}' for n in range(number)]
    add_cases(playbook=playbook, by=Principal.of(by), content="\n".join(lines), **more)


def answer_cases(playbook: Playbook, by: User, passes: Passes) -> int:
    """Answer what there is to answer, as an agent does; how many answers that took."""
    answered = 0
    while (task := next_case(playbook=playbook, by=Principal.of(by))) is not None:
        notes = RIGHT if passes(task.content, task.question) else WRONG
        make_outcome(playbook, by, serving_id=task.serving_id, signal="test", notes=notes)
        answered += 1
        playbook.refresh_from_db()
    return answered
