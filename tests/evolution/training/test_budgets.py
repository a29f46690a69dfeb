"""The hard stop on cost: set aside before a call, paid after it, by many threads at once."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal

import pytest

from evolution.engine.cost_budget import Budget, CostLimitReached
from evolution.engine.generator import Generation
from evolution.engine.llm import LLMRequest

REQUEST = LLMRequest(
    role="generator",
    step="generate:s",
    model="m",
    messages=[],
    schema=Generation,
    schema_name="ace_generation",
    max_tokens=1_000,
)


def cent_per_thousand(model: str, prompt_tokens: int, completion_tokens: int) -> Decimal:
    return Decimal(completion_tokens) / 100_000


def pay(budget: Budget) -> None:
    """A call that costs half of what it could."""
    budget.release(budget.reserve_cost(REQUEST), Decimal("0.005"))


def test_a_call_that_could_go_over_the_limit_is_not_made() -> None:
    budget = Budget(limit=Decimal("0.02"), price=cent_per_thousand)
    for _ in range(3):
        pay(budget)
    with pytest.raises(CostLimitReached, match=r"limit of \$0\.02"):
        pay(budget)
    assert budget.spent == Decimal("0.015")
    with pytest.raises(CostLimitReached):
        budget.raise_if_reached()


def test_many_threads_together_stay_under_the_limit() -> None:
    budget = Budget(limit=Decimal("0.1"), price=cent_per_thousand)

    def call(number: int) -> bool:
        try:
            pay(budget)
        except CostLimitReached:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        made = sum(pool.map(call, range(200)))
    assert budget.spent == made * Decimal("0.005") <= budget.limit


def test_what_an_earlier_process_spent_counts() -> None:
    budget = Budget(limit=Decimal("0.02"), price=cent_per_thousand, spent=Decimal("0.011"))
    with pytest.raises(CostLimitReached):
        pay(budget)


def test_a_call_that_failed_gives_back_what_was_set_aside() -> None:
    budget = Budget(limit=Decimal("0.01"), price=cent_per_thousand)
    budget.release(budget.reserve_cost(REQUEST))
    budget.reserve_cost(REQUEST)
    budget.raise_if_reached()
    assert budget.spent == 0


def test_the_schema_and_each_letter_beyond_ascii_count_as_sent() -> None:
    def sent(text: str) -> Decimal:
        request = replace(REQUEST, messages=[{"role": "user", "content": text}])
        return Budget(limit=Decimal(1), price=lambda _, sent, __: Decimal(sent)).most(request)

    schema = sent("")
    assert schema == math.ceil(len(json.dumps(REQUEST.json_schema())) / 2.5)
    assert sent("a" * 1_000) - schema == 400
    assert sent("税" * 1_000) - schema == 1_000
