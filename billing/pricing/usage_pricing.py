"""Prices of usage records: price overrides from the database, then the public list."""

from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.db.models import DateTimeField, Q, QuerySet
from django.utils import timezone

from billing.models import PriceOverride, UsageRecord
from billing.pricing.calculator import DEFAULT_BASE_URL, Price, PriceRule, price_call
from core.sql.compiled_queries import CompiledQuery, Param

NO_PRICE = "no_price"
"""The metadata key of the reason why a record's cost is unknown."""


def resolve_base_url(api_url: str) -> str:
    """The URL that is called for a configured URL, which may be empty."""
    return (api_url or settings.OPENAI_BASE_URL or DEFAULT_BASE_URL)[:200]


def price_rules(at: datetime | None = None) -> list[PriceRule]:
    """The price overrides, all of them or those in force at one moment."""
    rows = PriceOverride.objects.order_by() if at is None else OVERRIDES_IN_FORCE.all(at=at)
    return [_price_rule(row) for row in rows]


def _price_rule(row: PriceOverride) -> PriceRule:
    return PriceRule(
        source=f"override {row.pk}/{row.version}",
        model=row.model,
        base_url=row.base_url,
        input_usd=row.input_usd,
        cached_usd=row.input_usd if row.cached_usd is None else row.cached_usd,
        output_usd=row.output_usd,
        valid_from=row.valid_from,
        valid_until=row.valid_until,
    )


def _overrides_in_force() -> QuerySet[PriceOverride]:
    at = Param("at", DateTimeField())
    rows = PriceOverride.objects.filter(Q(valid_from=None) | Q(valid_from__lte=at))
    return rows.filter(Q(valid_until=None) | Q(valid_until__gt=at))


OVERRIDES_IN_FORCE = CompiledQuery(_overrides_in_force)


def estimate_cost(*, model: str, prompt_tokens: int, completion_tokens: int, api_url: str) -> Price:
    """The cost of such a call now."""
    at = timezone.now()
    return price_call(
        model=model,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cached_tokens=0,
        at=at,
        api_url=resolve_base_url(api_url),
        overrides=price_rules(at),
    )


def price_usage(record: UsageRecord, overrides: list[PriceRule]) -> Price:
    """The cost of a recorded call at its time, by these overrides and the public list."""
    return price_call(
        model=record.model,
        prompt_tokens=record.prompt_tokens,
        completion_tokens=record.completion_tokens,
        cached_tokens=record.cached_tokens,
        at=record.created_at,
        api_url=resolve_base_url(record.base_url),
        overrides=overrides,
    )


def apply_price(record: UsageRecord, price: Price) -> None:
    """Set cost and price source of a record, or the reason why they are unknown."""
    record.cost_usd, record.price_source = price.cost, price.source
    rest = {name: value for name, value in record.metadata.items() if name != NO_PRICE}
    record.metadata = rest | ({NO_PRICE: price.reason} if price.reason else {})


def price_in_usd(model: str, prompt_tokens: int, completion_tokens: int) -> Decimal | None:
    """The price of a call now, in US dollars."""
    return estimate_cost(
        model=model,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        api_url=settings.OPENAI_BASE_URL,
    ).cost
