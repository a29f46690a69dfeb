"""A tool world with hidden rules, and a model that knows nothing of them but its prompt.

A shop's API refuses a call that breaks a rule of its own, names what is wrong, and locks the order:
so a rule helps only who knows it beforehand. Four of six kinds of task have one. Success is the
state of the shop; there is no label.
"""

import json
import random
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evolution.engine.environments import Question
from tests.harness.fake_llm.answers import BLOCK, BULLET, Messages, reflection, role_of
from tests.harness.fake_llm.model import FakeLLM

RULES = {
    "refund": ("amount is in cents", "POST /refund {order} {amount}00"),
    "ship": ("warehouse must be named first", "POST /ship WEST {order}"),
    "cancel": ("reason is an upper case code", "POST /cancel {order} CUSTOMER"),
    "invoice": ("date is written without dashes", "POST /invoice {order} 20260102"),
}
PLAIN = {
    "refund": "POST /refund {order} {amount}",
    "ship": "POST /ship {order}",
    "cancel": "POST /cancel {order} customer",
    "invoice": "POST /invoice {order} 2026-01-02",
    "show": "GET /orders/{order}",
    "note": "POST /note {order} called",
}
TASK = re.compile(r"Please (\w+) order (\d+) \((\d+) dollars\)")


@dataclass
class Shop:
    """`POST /login` comes first; then one call does the task, or locks the order."""

    wanted: str = ""
    kind: str = ""
    done: list[str] = field(default_factory=list)

    def reset(self, question: Question) -> str:
        match = TASK.search(question.task)
        assert match is not None, question
        self.kind, order, amount = match.groups()
        _, call = RULES.get(self.kind, ("", PLAIN[self.kind]))
        self.wanted = call.format(order=order, amount=amount)
        return "The shop's API: POST /login, then the calls of your task."

    def step(self, action: str) -> tuple[str, bool]:
        self.done.append(action)
        if action == "POST /login":
            return "200 logged in", False
        if self.done[0] != "POST /login":
            return "401 log in first", False
        if action == self.wanted:
            return "200 ok", True
        return f"422 {self.kind}: {RULES[self.kind][0]}; the order is locked", True

    def score(self) -> bool:
        return self.done[-1] == self.wanted


def write_tasks(path: Path, *, seed: int, each: int) -> Path:
    """`each` tasks of each kind, without targets; orders of other seeds differ."""
    draw = random.Random(seed)
    orders = draw.sample(range(1000 * seed, 1000 * seed + 999), each * len(PLAIN))
    rows = [
        {"question": f"Please {kind} order {orders.pop()} ({draw.randint(2, 99)} dollars)."}
        for kind in PLAIN
        for _ in range(each)
    ]
    draw.shuffle(rows)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


class ShopLLM(FakeLLM):
    """Logs in, then makes the plain call, or the right one where a bullet tells the rule."""

    def answer(self, messages: Messages) -> dict[str, Any]:
        prompt, role = messages[1]["content"], role_of(messages)
        if role == "generator":
            return _acted(prompt)
        return _reflected(prompt) if role == "reflector" else super().answer(messages)


def _acted(prompt: str) -> dict[str, Any]:
    match = TASK.findall(prompt)[-1]
    if "200 logged in" not in prompt:
        return {"reasoning": "First the login.", "final_answer": "POST /login", "bullet_ids": []}
    kind, order, amount = match
    rule, right = RULES.get(kind, ("nothing is hidden here", PLAIN[kind]))
    bullets = BULLET.findall(prompt.partition("END PLAYBOOK")[0])
    cited = [key for key, text in bullets if rule in text]
    action = (right if cited else PLAIN[kind]).format(order=order, amount=amount)
    return {"reasoning": "", "final_answer": action, "bullet_ids": cited}


def _reflected(prompt: str) -> dict[str, Any]:
    """As FakeLLM's, but the insight is what the API really returned."""
    _task, trace, *_ = (block[1] for block in BLOCK.findall(prompt))
    refused = re.search(r"422 (\w+): ([^;]+);", trace)
    insight = f"When you {refused[1]} an order, {refused[2]}." if refused else ""
    return reflection(prompt) | {"key_insight": insight, "correct_approach": ""}
