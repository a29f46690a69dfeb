"""Price overrides: which one applies, and how usage records name it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from accounts.models import User
from billing.limits.spending import max_cost
from billing.models import PriceOverride, UsageRecord
from billing.pricing.usage_pricing import price_usage
from tests.billing.test_metering import begin, finish
from tests.billing.test_pricing import NOW


def own(**changes: Any) -> PriceOverride:
    usual = {"input_usd": Decimal(1), "cached_usd": Decimal("0.5"), "output_usd": Decimal(4)}
    return PriceOverride(**usual | {"model": "own-7b", "note": "cheap"} | changes)


def source(
    *overrides: PriceOverride, model: str = "own-7b", url: str = "", at: datetime = NOW
) -> str:
    """The note of the override that applies, or the public list."""
    call = UsageRecord(model=model, prompt_tokens=1_000_000, created_at=at, base_url=url)
    found = price_usage(call, overrides).source
    return next((one.note for one in overrides if one.source == found), found)


@pytest.mark.parametrize(
    ("pattern", "model", "fits"),
    [
        ("own*7b", "own-7b", True),
        ("own*7b", "own7b", True),
        ("Own-*", "own-7b", True),
        ("own-*-*b", "own-7b", False),
        ("*7*", "own-7b", True),
        ("own-7*7b", "own-7b", False),
        ("own-7b*b", "own-7b", False),
        ("own.7b", "own-7b", False),
        ("*a" * 40 + "*b", "a" * 100, False),
        ("*a" * 40, "a" * 100, True),
    ],
)
def test_many_stars_match_quickly(pattern: str, model: str, fits: bool) -> None:
    assert own(model=pattern).fits(model, "", NOW) is fits


def make_price(**fields: Any) -> PriceOverride:
    usual = {"model": "our-own-7b", "input_usd": Decimal(1), "output_usd": Decimal(4)}
    return PriceOverride.objects.create(**usual | fields)


def test_input_cached_input_and_output_have_their_own_price() -> None:
    call = UsageRecord(
        model="own-7b",
        prompt_tokens=3_000_000,
        completion_tokens=1_000_000,
        cached_tokens=1_000_000,
        created_at=NOW,
    )
    assert price_usage(call, [own()]).cost == Decimal("6.500000")


def test_an_override_applies_before_the_public_list() -> None:
    assert source(own(model="gpt-4o-mini"), model="gpt-4o-mini") == "cheap"
    assert source(own(model="gpt-4o-mini"), model="gpt-4o").startswith("genai-prices")


@pytest.mark.parametrize(
    ("pattern", "model", "fits"),
    [
        ("own-*", "OWN-7b", True),
        ("own-*", "my-own-7b", False),
        ("own.7b", "own-7b", False),
        ("own-7b", "own-7b-2026", False),
        ("*7b", "own-7b", True),
    ],
)
def test_only_a_star_is_a_wildcard(pattern: str, model: str, fits: bool) -> None:
    assert (source(own(model=pattern), model=model) == "cheap") is fits


@pytest.mark.parametrize(
    ("base", "url", "fits"),
    [
        ("https://a.example", "https://a.example/v1", True),
        ("https://a.example/", "https://A.example", True),
        ("https://a.example", "https://a.example.org/v1", False),
        ("https://api.openai.com/v1", "", True),
    ],
)
def test_a_base_url_limits_an_override_to_its_prefix(base: str, url: str, fits: bool) -> None:
    assert (source(own(base_url=base), url=url) == "cheap") is fits


def test_the_most_specific_override_applies() -> None:
    url, late = "https://a.example/v1", NOW - timedelta(days=1)
    prices = [
        own(note="any", model="own-*"),
        own(note="longer", model="own-7*"),
        own(note="exact"),
        own(note="later", valid_from=late),
        own(note="address", model="own-*", base_url="https://a.example"),
    ]
    won = [source(*prices[:count], url=url) for count in range(1, 6)]
    assert won == ["any", "longer", "exact", "later", "address"]


def test_an_override_applies_within_its_validity() -> None:
    year = own(
        valid_from=datetime(2026, 1, 1, tzinfo=UTC), valid_until=datetime(2027, 1, 1, tzinfo=UTC)
    )
    assert source(year, at=datetime(2026, 1, 1, tzinfo=UTC)) == "cheap"
    for at in (datetime(2025, 12, 31, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)):
        assert source(year, at=at).startswith("genai-prices")


def test_a_usage_record_names_the_override_and_its_version(alice: User) -> None:
    price = make_price(version=3)
    record = finish(begin(alice), model="our-own-7b")
    assert record.cost_usd == Decimal("0.003000")
    assert record.price_source == f"override {price.pk}/3"
    assert "no_price" not in record.metadata


def test_an_override_with_a_base_url_needs_that_url(alice: User) -> None:
    make_price(base_url="https://ours.example")
    ours = finish(begin(alice, api_url="https://ours.example/v1"), model="our-own-7b")
    other = finish(begin(alice), model="our-own-7b")
    assert (ours.cost_usd, other.cost_usd) == (Decimal("0.003000"), None)
    assert other.base_url == "https://api.openai.com/v1"


def test_cost_limits_use_overrides(db: None) -> None:
    call: dict[str, Any] = {"model": "our-own-7b", "prompt_tokens": 1000, "completion_tokens": 500}
    assert max_cost(**call, api_url="") == 0
    make_price()
    assert max_cost(**call, api_url="") == Decimal("0.003000")
