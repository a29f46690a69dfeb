"""Prices of usage records: price overrides from the database, then the public list."""

from collections.abc import Iterable
from decimal import Decimal

from django.conf import settings
from django.db.models import DateTimeField, Q, QuerySet
from django.utils import timezone

from billing.models import PriceOverride, UsageRecord
from billing.pricing.calculator import DEFAULT_BASE_URL, Price, price_call, rounded_price
from core.sql.compiled_queries import CompiledQuery, Param

NO_PRICE = "no_price"
"""The metadata key of the reason why a record's cost is unknown."""


def resolve_base_url(api_url: str) -> str:
    """The URL that is called for a configured URL, which may be empty."""
    return (api_url or settings.OPENAI_BASE_URL or DEFAULT_BASE_URL)[:200]


def _overrides_in_force() -> QuerySet[PriceOverride]:
    at = Param("at", DateTimeField())
    rows = PriceOverride.objects.filter(Q(valid_from=None) | Q(valid_from__lte=at))
    return rows.filter(Q(valid_until=None) | Q(valid_until__gt=at))


OVERRIDES_IN_FORCE = CompiledQuery(_overrides_in_force)


def price_usage(record: UsageRecord, overrides: Iterable[PriceOverride] | None = None) -> Price:
    """The cost of a call at its time: of the best override that fits, else of the public list.

    `overrides` are those in force at that time if left out.
    """
    url, at = resolve_base_url(record.base_url), record.created_at
    known = OVERRIDES_IN_FORCE.all(at=at) if overrides is None else overrides
    own = [override for override in known if override.fits(record.model, url, at)]
    if own:
        best = max(own, key=lambda override: override.rank)
        return rounded_price(best.cost_of(record), best.source)
    return price_call(
        model=record.model,
        prompt_tokens=record.prompt_tokens,
        completion_tokens=record.completion_tokens,
        cached_tokens=record.cached_tokens,
        at=at,
        api_url=url,
    )


def price_in_usd(
    model: str, prompt_tokens: int, completion_tokens: int, api_url: str = ""
) -> Decimal | None:
    """The price of such a call now, in US dollars."""
    call = UsageRecord(
        model=model,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        base_url=api_url,
        created_at=timezone.now(),
    )
    return price_usage(call).cost


def apply_price(record: UsageRecord, price: Price) -> None:
    """Set cost and price source of a record, or the reason why they are unknown."""
    record.cost_usd, record.price_source = price.cost, price.source
    rest = {name: value for name, value in record.metadata.items() if name != NO_PRICE}
    record.metadata = rest | ({NO_PRICE: price.reason} if price.reason else {})
