"""Recorded replies in place of a model, and what a case makes of them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from evolution.engine.llm import LLM, AnswerError, LLMReply, LLMRequest, Usage
from tests.real_model.cases import Case

RECORDED = Path(__file__).parent / "recorded.json"


class Replayed:
    """A model that says the recorded replies in their order, and the last one again."""

    def __init__(self, replies: Sequence[str]) -> None:
        self._replies: Iterator[str] = iter([*replies, *[replies[-1]] * 9])

    def complete(self, request: LLMRequest[Any]) -> LLMReply:
        return LLMReply(next(self._replies), Usage(), request.model, "")


@dataclass(frozen=True)
class Judged:
    """What holds of an answer; an answer that was refused breaks no `must`."""

    refused: str
    must: dict[str, bool]
    good: dict[str, bool]


def judge(case: Case, llm: LLM, model: str) -> Judged:
    try:
        answer = case.ask(llm, model)
    except AnswerError as error:
        return Judged(error.code, dict.fromkeys(case.must, True), dict.fromkeys(case.good, False))
    held = ({k: bool(v(answer)) for k, v in checks.items()} for checks in (case.must, case.good))
    return Judged("", *held)


@cache
def recorded() -> dict[str, dict[str, list[str]]]:
    """By model and case the replies, in the order in which they came."""
    found: dict[str, dict[str, list[str]]] = json.loads(RECORDED.read_text(encoding="utf-8"))
    return found
