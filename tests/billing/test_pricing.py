"""List prices, offline and exact."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from billing.pricing.calculator import PRICE_LIST_SOURCE, Price, price_call

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def price(**changes: Any) -> Price:
    call: dict[str, Any] = {
        "model": "gpt-4o-mini",
        "prompt_tokens": 1_000_000,
        "completion_tokens": 0,
        "cached_tokens": 0,
        "at": NOW,
    }
    return price_call(**call | changes)


def test_a_known_model_costs_its_list_price() -> None:
    assert price() == Price(Decimal("0.150000"), f"{PRICE_LIST_SOURCE} openai/gpt-4o-mini")


def test_output_costs_more_than_input() -> None:
    assert price(prompt_tokens=0, completion_tokens=1_000_000).cost == Decimal("0.600000")


def test_cached_tokens_are_part_of_the_prompt_and_cheaper() -> None:
    assert price(cached_tokens=1_000_000).cost == Decimal("0.075000")


def test_a_dated_model_name_has_the_price_of_its_model() -> None:
    assert price(model="gpt-4o-mini-2024-07-18").cost == price().cost


def test_an_unknown_provider_has_the_price_of_the_model_name() -> None:
    assert price(api_url="http://127.0.0.1:8080/v1").cost == price().cost


@pytest.mark.parametrize("model", ["", "our-own-7b"])
def test_an_unknown_model_has_no_price_but_a_reason(model: str) -> None:
    found = price(model=model)
    assert found.cost is None
    assert found.source == PRICE_LIST_SOURCE
    assert repr(model) in found.reason


def test_more_cached_than_prompt_tokens_is_no_failure() -> None:
    assert price(prompt_tokens=10, cached_tokens=20).cost is not None


def test_a_cost_beyond_the_column_is_unknown() -> None:
    found = price(model="gpt-4", prompt_tokens=10**12)
    assert found.cost is None
    assert found.reason
