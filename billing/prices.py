"""Prices as the ledger takes them: the operator's own from the database, then the public list."""

from datetime import datetime

from django.conf import settings
from django.db.models import DateTimeField, Q, QuerySet
from django.utils import timezone

from accounts.prepared import Given, Prepared
from billing.models import PriceOverride, UsageRecord
from billing.pricing import OPENAI_URL, Override, Price, price_call

NO_PRICE = "no_price"
"""The name in a row's metadata of the reason why its cost is not known."""


def address_of(api_url: str) -> str:
    """The address that is called when this one, or none, is asked for."""
    return (api_url or settings.OPENAI_BASE_URL or OPENAI_URL)[:200]


def own_prices(at: datetime | None = None) -> list[Override]:
    """The operator's prices, all of them or those of one moment."""
    rows = PriceOverride.objects.order_by() if at is None else IN_FORCE.all(at=at)
    return [row.rule for row in rows]


def _in_force() -> QuerySet[PriceOverride]:
    at = Given("at", DateTimeField())
    rows = PriceOverride.objects.filter(Q(valid_from=None) | Q(valid_from__lte=at))
    return rows.filter(Q(valid_until=None) | Q(valid_until__gt=at))


IN_FORCE = Prepared(_in_force)


def cost_now(*, model: str, prompt_tokens: int, completion_tokens: int, api_url: str) -> Price:
    """What such a call costs now."""
    at = timezone.now()
    return price_call(
        model=model,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cached_tokens=0,
        at=at,
        api_url=address_of(api_url),
        overrides=own_prices(at),
    )


def price_record(record: UsageRecord, overrides: list[Override]) -> Price:
    """What the row's call cost at its time, by these prices of our own and the public list."""
    return price_call(
        model=record.model,
        prompt_tokens=record.prompt_tokens,
        completion_tokens=record.completion_tokens,
        cached_tokens=record.cached_tokens,
        at=record.created_at,
        api_url=address_of(record.base_url),
        overrides=overrides,
    )


def note_price(record: UsageRecord, price: Price) -> None:
    """The row says what it cost, by which price, or why that is not known."""
    record.cost_usd, record.price_source = price.cost, price.source
    rest = {name: value for name, value in record.metadata.items() if name != NO_PRICE}
    record.metadata = rest | ({NO_PRICE: price.reason} if price.reason else {})
