"""What a call costs: list prices from genai-prices, in Decimal US dollars. Pure and offline."""

from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from importlib.metadata import version

from genai_prices import Usage, calc_price

SOURCE = f"genai-prices {version('genai-prices')}"
MICRO = Decimal("0.000001")
# What the column Decimal(12,6) holds.
MOST = Decimal("999999.999999")


@dataclass(frozen=True)
class Price:
    """`cost` in US dollars to six places, or None and the reason why it is not known."""

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

    An endpoint that the price list does not know is taken to sell the model of that name.
    """
    usage = Usage(
        input_tokens=prompt_tokens,
        output_tokens=completion_tokens,
        cache_read_tokens=min(cached_tokens, prompt_tokens),
    )
    try:
        try:
            found = calc_price(
                usage,
                model,
                provider_api_url=api_url or "https://api.openai.com/v1",
                genai_request_timestamp=at,
            )
        except LookupError:
            found = calc_price(usage, model, genai_request_timestamp=at)
    except LookupError:
        return Price(None, SOURCE, f"no price is known for the model {model!r}")
    cost = found.total_price.quantize(MICRO, ROUND_HALF_UP)
    if cost > MOST:
        return Price(None, SOURCE, "the token counts are implausible")
    return Price(cost, f"{SOURCE} {found.provider.id}/{found.model.id}"[:100])
