"""The cost of a call in US dollars: price overrides first, then genai-prices. Pure, offline."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from importlib.metadata import version

from genai_prices import Usage, calc_price

PRICE_LIST_SOURCE = f"genai-prices {version('genai-prices')}"
MICRO = Decimal("0.000001")
MILLION = Decimal(1_000_000)
# The maximum of the column, Decimal(12, 6).
MAX_COST = Decimal("999999.999999")
BEGINNING_OF_TIME = datetime.min.replace(tzinfo=UTC)
DEFAULT_BASE_URL = "https://api.openai.com/v1"
"""The URL that is called when none is configured."""


@dataclass(frozen=True)
class Price:
    """`cost` in US dollars to six places, or None and the reason why it is unknown."""

    cost: Decimal | None
    source: str
    reason: str = ""


@dataclass(frozen=True)
class PriceRule:
    """A price override per million tokens; `source` is its id and version.

    `model` is a name in which * matches any characters; `base_url` is a prefix.
    """

    source: str
    model: str
    base_url: str
    input_usd: Decimal
    cached_usd: Decimal
    output_usd: Decimal
    valid_from: datetime | None = None
    valid_until: datetime | None = None

    def fits(self, model: str, api_url: str, at: datetime) -> bool:
        return (
            _matches_pattern(model.lower(), self.model.strip().lower())
            and _is_under_base_url(api_url, self.base_url)
            and (self.valid_from is None or self.valid_from <= at)
            and (self.valid_until is None or at < self.valid_until)
        )

    @property
    def rank(self) -> tuple[int, bool, int, datetime, str]:
        """The greatest applies: longest URL, full name, longest pattern, latest start."""
        letters = len(self.model.replace("*", ""))
        return (
            len(self.base_url),
            "*" not in self.model,
            letters,
            self.valid_from or BEGINNING_OF_TIME,
            self.source,
        )

    def cost_of(self, prompt_tokens: int, completion_tokens: int, cached_tokens: int) -> Decimal:
        cached = min(cached_tokens, prompt_tokens)
        spent = (prompt_tokens - cached) * self.input_usd + cached * self.cached_usd
        return (spent + completion_tokens * self.output_usd) / MILLION


def price_call(
    *,
    model: str,
    prompt_tokens: int,
    completion_tokens: int,
    cached_tokens: int,
    at: datetime,
    api_url: str = "",
    overrides: Iterable[PriceRule] = (),
) -> Price:
    """The price of one call at that time; `prompt_tokens` include the cached ones.

    A provider unknown to the price list is assumed to sell the model of that name.
    """
    url = api_url or DEFAULT_BASE_URL
    own = [override for override in overrides if override.fits(model, url, at)]
    if own:
        best = max(own, key=lambda override: override.rank)
        return _rounded_price(
            best.cost_of(prompt_tokens, completion_tokens, cached_tokens), best.source
        )
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
    return _rounded_price(
        found.total_price, f"{PRICE_LIST_SOURCE} {found.provider.id}/{found.model.id}"[:100]
    )


def _rounded_price(cost: Decimal, source: str) -> Price:
    rounded = cost.quantize(MICRO, ROUND_HALF_UP)
    if rounded > MAX_COST:
        return Price(None, source, "implausible token counts")
    return Price(rounded, source)


def _matches_pattern(name: str, pattern: str) -> bool:
    """Whether the name matches a pattern with *.

    Each part matches where it first occurs: a regular expression tries every position, which took
    ten seconds with six *, while a provider circuit was locked.
    """
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    *middle, last = rest
    at, end = len(first), len(name) - len(last)
    if not name.startswith(first) or not name.endswith(last):
        return False
    for part in middle:
        found = name.find(part, at, max(end, 0))
        if found < 0:
            return False
        at = found + len(part)
    return at <= end


def _is_under_base_url(api_url: str, base_url: str) -> bool:
    """Whether the URL has this prefix; https://a.example is no prefix of https://a.example.org."""
    base, url = base_url.strip().rstrip("/").lower(), api_url.rstrip("/").lower()
    return not base or url == base or url.startswith(f"{base}/")
