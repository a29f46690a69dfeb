"""The cost of a call in US dollars by the public list genai-prices. Pure, offline."""

from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from importlib.metadata import version

from genai_prices import Usage, calc_price

PRICE_LIST_SOURCE = f"genai-prices {version('genai-prices')}"
MICRO = Decimal("0.000001")
# The maximum of the column, Decimal(12, 6).
MAX_COST = Decimal("999999.999999")
DEFAULT_BASE_URL = "https://api.openai.com/v1"
"""The URL that is called when none is configured."""


@dataclass(frozen=True)
class Price:
    """`cost` in US dollars to six places, or None and the reason why it is unknown."""

    cost: Decimal | None
    source: str
    reason: str = ""


def price_call(
    *,
    model: str,
    prompt_tokens: int,
    completion_tokens: int,
    cached_tokens: int,
    at: datetime,
    api_url: str = "",
) -> Price:
    """The list price of one call at that time; `prompt_tokens` include the cached ones.

    A provider unknown to the price list is assumed to sell the model of that name.
    """
    url = api_url or DEFAULT_BASE_URL
    usage = Usage(
        input_tokens=prompt_tokens,
        output_tokens=completion_tokens,
        cache_read_tokens=min(cached_tokens, prompt_tokens),
    )
    try:
        try:
            found = calc_price(usage, model, provider_api_url=url, genai_request_timestamp=at)
        except LookupError:
            found = calc_price(usage, model, genai_request_timestamp=at)
    except LookupError:
        return Price(None, PRICE_LIST_SOURCE, f"unknown price of model {model!r}")
    source = f"{PRICE_LIST_SOURCE} {found.provider.id}/{found.model.id}"
    return rounded_price(found.total_price, source[:100])


def rounded_price(cost: Decimal, source: str) -> Price:
    """A cost to six places; None if the column cannot hold it."""
    rounded = cost.quantize(MICRO, ROUND_HALF_UP)
    if rounded > MAX_COST:
        return Price(None, source, "implausible token counts")
    return Price(rounded, source)
