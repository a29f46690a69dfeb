"""The input of a measurement: tasks of a data set, a playbook of a size, outcomes on it."""

import json
from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path

from evolution.engine.inputs import OutcomeInput, PlaybookInput
from playbooks.document.sections import DEFAULT_SECTIONS
from playbooks.document.text import (
    Bullet,
    Document,
    clean_content,
    estimate_tokens,
    make_id,
    render_for_agents,
)

BUDGET = 16_000
CITED = 3
"""Bullets that an outcome cites."""
AREAS = (
    *("quarterly reports", "loan questions", "tables with footnotes", "ratios", "cash flow tasks"),
    *("depreciation schedules", "currency conversions", "per-share figures", "growth rates"),
    *("tasks with several years", "tax questions", "bond prices", "inventory questions"),
    *("lease contracts", "segment data", "pension notes", "restated figures", "forecasts"),
)
ADVICE = (
    "write the formula down with its units before inserting a number, and check that both sides "
    "have the same unit.",
    "convert percentages to decimals first; `12.5 %` is `0.125` in every product and power.",
    "read whether the rate is for a year, a quarter or a month; divide it by 4 or 12 if needed.",
    "round only the last result, to the number of places that the question asks for.",
    "take the average of opening and closing balance when the formula speaks of an average.",
    "keep the sign: an outflow, a loss and a decrease are negative throughout.",
    "look for the words `thousands` and `millions` above the table and scale every figure once.",
    "use the figure of the period that is asked for, not the restated one of the year before.",
    "compare the result with a rough estimate; a factor of 10 or 100 is a unit that was missed.",
    "answer with the number alone when no explanation is asked for: no unit, no currency sign.",
    "count the days of the period that is asked for, 365 for a year and 90 for a quarter, unless "
    "the text names another number.",
    "name the assumption when two readings are possible; take the one that the table supports.",
)


def read_tasks(path: Path) -> list[tuple[str, str]]:
    """(task, expected answer) of each line of a data set; ValueError for anything else."""
    lines = path.read_text(encoding="utf-8").split("\n")
    return [_task(line, number) for number, line in enumerate(lines, start=1) if line.strip()]


def _task(line: str, number: int) -> tuple[str, str]:
    try:
        row = json.loads(line)
        return str(row["context"]), str(row["target"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ValueError(
            f"line {number}: write a JSON object with `context` and `target`."
        ) from None


def sample_playbook(tokens: int) -> PlaybookInput:
    """A playbook whose agent view has about `tokens` tokens (estimate), of bullets all unlike."""
    bullets: list[Bullet] = []
    size = estimate_tokens(render_for_agents(Document(DEFAULT_SECTIONS, ())))
    for number, content in zip(count(1), _contents(), strict=False):
        section = DEFAULT_SECTIONS[number % len(DEFAULT_SECTIONS)]
        bullet = Bullet(make_id(section, number), section.key, content, number % 7, number % 3 // 2)
        size += estimate_tokens(f"[{bullet.id}] {content}\n")
        if size > tokens:
            break
        bullets.append(bullet)
    return PlaybookInput(Document.of(DEFAULT_SECTIONS, bullets), BUDGET)


def _contents() -> Iterator[str]:
    for turn in count():
        for place, advice in enumerate(ADVICE):
            area = AREAS[(place + turn) % len(AREAS)]
            case = f", case {turn // len(AREAS) + 1}" if turn >= len(AREAS) else ""
            yield clean_content(f"In {area}{case}: {advice}")


def sample_outcome(number: int, task: tuple[str, str], playbook: PlaybookInput) -> OutcomeInput:
    """A report on one task: a working of some 150 words, a note, and cited bullets."""
    question, answer = task
    ids = [bullet.id for bullet in playbook.document.bullets]
    cited = tuple(ids[(number * 7 + step * 3) % len(ids)] for step in range(CITED)) if ids else ()
    is_right = number % 3 != 0
    return OutcomeInput(
        id=f"outcome-{number:04d}",
        task=question,
        status="success" if is_right else "failure",
        trace=_working(question, answer, cited, is_right=is_right),
        notes="" if is_right else f"Expected {answer}. I had used the wrong period for the rate.",
        signal="ground_truth",
        cited=cited,
    )


def _working(question: str, answer: str, cited: Sequence[str], *, is_right: bool) -> str:
    last = question[-300:].strip()
    steps = [
        f"I read the question again: {last}",
        f"The playbook has advice for this: {', '.join(cited) or 'none'}. I apply it step by step.",
        "First I write down what is given, with the unit of each figure, and what is asked for.",
        "Then I choose the formula, insert the figures and keep all decimals until the last step.",
        "The units cancel as they should. A rough estimate gives a result of the same order.",
        "I check the sign and the scale: the figures are in plain units, nothing is in thousands.",
        f"My answer is {answer if is_right else '0'}, rounded as the question asks.",
    ]
    return "\n".join(f"Step {place}. {step}" for place, step in enumerate(steps, start=1))
