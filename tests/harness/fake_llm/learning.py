"""A world whose facts only feedback reveals, and a model that knows nothing but its prompt.

A task asks to turn an amount of one invented unit into another. What one unit is worth stands
nowhere but in the targets (target = amount x worth). The Generator of this server multiplies by the
worth that a bullet or a reflection in its prompt states, else by 1; the Reflector works the worth
out when it is told the right answer. Some units are worth 1, so the baseline is not 0.

This proves the machinery (feedback → reflection → bullet → better answers), not a model's wisdom.
"""

import json
import random
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.harness.fake_llm.answers import BLOCK, BULLET, Messages, reflection, role_of
from tests.harness.fake_llm.model import FakeLLM

WORTH = {
    "velmorin": 7, "castrell": 13, "duskany": 1, "hopplewick": 29, "quarzo": 31,
    "brindlemaw": 17, "synthos": 1, "ferrigand": 19, "ludmark": 23, "aspenova": 11,
}  # fmt: skip
FACT = re.compile(r"(\w+) by (\d+)")
TASK = re.compile(r"Turn (\d+) (\w+) into crowns")


def fact(unit: str, worth: int) -> str:
    """A bullet's text; the sentences differ enough to be no near-duplicates."""
    return f"{unit.title()} to crowns: multiply {unit} by {worth}, as {unit} {unit[::-1]} shows."


def write_world(path: Path, *, seed: int, each: int) -> Path:
    """A data set with `each` tasks for each unit; amounts of other seeds differ."""
    draw = random.Random(seed)
    rows = [
        {"question": f"Turn {amount} {unit} into crowns.", "target": str(amount * worth)}
        for unit, worth in WORTH.items()
        for amount in draw.sample(range(1000 * seed + 101, 1000 * seed + 999), each)
    ]
    draw.shuffle(rows)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def targets_of(paths: Iterable[Path]) -> set[str]:
    """The right answers that only feedback may reveal; those of units worth 1 stand in the task."""
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    return {row["target"] for row in rows if row["target"] not in row["question"]}


class LearningLLM(FakeLLM):
    """The deterministic model of this world; its Curator is that of FakeLLM."""

    def answer(self, messages: Messages) -> dict[str, Any]:
        prompt, role = messages[1]["content"], role_of(messages)
        if role == "generator":
            return _answered(prompt)
        return _reflected(prompt) if role == "reflector" else super().answer(messages)


def _answered(prompt: str) -> dict[str, Any]:
    amount, unit = TASK.findall(prompt)[-1]
    bullets = BULLET.findall(prompt.partition("END PLAYBOOK")[0])
    cited, worth = next(
        ((key, found) for key, text in bullets if (found := _worth(text, unit))), ("", 0)
    )
    worth = worth or _worth(prompt.partition("END PLAYBOOK")[2], unit)
    return {
        "reasoning": f"{amount} times {worth or 1}.",
        "final_answer": str(int(amount) * (worth or 1)),
        "bullet_ids": [cited] if cited else [],
    }


def _worth(text: str, unit: str) -> int:
    return next((int(number) for name, number in FACT.findall(text) if name == unit), 0)


def _reflected(prompt: str) -> dict[str, Any]:
    """As FakeLLM's, but the insight is what the right answer reveals; it even quotes the answer."""
    task, _trace, _notes, *truths = (block[1] for block in BLOCK.findall(prompt))
    found = reflection(prompt) | {"key_insight": "", "correct_approach": ""}
    truth = re.search(r"\d+", truths[0]) if truths else None
    amount, unit = TASK.findall(task)[-1]
    if truth and "failure" in prompt:
        found["key_insight"] = fact(unit, int(truth[0]) // int(amount))
        found["correct_approach"] = f"The right answer was {truth[0]}."
    return found
