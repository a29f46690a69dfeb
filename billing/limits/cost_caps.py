"""Who may spend what in a day or a month: limits that pause work and never fail it.

The ledger is the count: what the calls have cost, and what is set aside for those that run. Read
are its sums by day (DailySpend), which move with it, so that a full month is looked at as quickly.
The operator's caps count one credential's calls, and hold exactly as long as the caller has locked
the line that all of these go through (`evolution.worker.llm_admission`). A person's budget counts the calls
with every key of theirs; only at the moment of a change of keys two lines can pass it side by side.
A call whose price nobody knows counts as nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import reduce
from operator import or_
from uuid import UUID

from django.conf import settings
from django.db.models import Q, Sum, UUIDField

from billing.errors import LimitReached
from billing.models import Budget, CostCap, DailySpend
from billing.pricing.usage_pricing import estimate_cost
from core.sql.compiled_queries import CompiledQuery, Param

ZERO = Decimal(0)
COST_CAP = "cost_cap"
SPANS = ("day", "month")
ACCOUNT, PLAYBOOK = "of this account", "of this playbook"


@dataclass(frozen=True)
class SpendLimit:
    """An amount for a span of time, and which calls (of DailySpend) count."""

    what: str
    whose: str
    span: str
    usd: Decimal
    calls: Q


class SpendLimitReached(LimitReached):
    """The next call could cost more than a day or a month may."""

    def __init__(self, limit: SpendLimit, until: datetime, want: Decimal, credential: str) -> None:
        which = f"{'Today' if limit.span == 'day' else 'This month'}'s {limit.what} {limit.whose}"
        said = (
            f"{which} ({limit.usd:.2f} US$) is reached. Work goes on at {until:%H:%M} UTC on "
            f"{until.day} {until:%B}, or once the {limit.what} is raised."
        )
        if want > limit.usd:
            said = (
                f"{which} ({limit.usd:.2f} US$) is less than the next call can cost "
                f"({want:.2f} US$). Work goes on once the {limit.what} is raised."
            )
        super().__init__(said)
        self.code, self.until, self.mark, self.want = COST_CAP, until, credential, want


@dataclass(frozen=True)
class Spender:
    """For whom a call is made, and with what: `credential` as in the ledger.

    `own_key`: the owner's own key pays, so the operator's limits do not apply.
    """

    user_id: UUID
    playbook_id: UUID | None
    credential: str
    own_key: bool


def max_cost(*, model: str, prompt_tokens: int, completion_tokens: int, api_url: str) -> Decimal:
    """What a call can cost at most; 0 when nobody knows the price."""
    price = estimate_cost(
        model=model,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        api_url=api_url,
    )
    return price.cost or ZERO


def check_spend_limits(spender: Spender, *, want: Decimal, now: datetime) -> None:
    """Raise SpendLimitReached when a call of `want` US$ could go over a limit of its day or month."""
    limits = [*_cost_caps(spender), *_budgets(spender)]
    for limit, spent in zip(limits, _spent_so_far(limits, now), strict=True):
        if spent + want > limit.usd:
            raise SpendLimitReached(limit, span_end(limit.span, now), want, spender.credential)


def _spent_so_far(limits: list[SpendLimit], now: datetime) -> list[Decimal]:
    """What each of them holds already: costs, and what is set aside for calls that run."""
    if not limits:
        return []
    parts = [one.calls & Q(day__gte=span_start(one.span, now).date()) for one in limits]
    sums = [Sum("spent_usd", filter=part, default=ZERO) for part in parts]
    # In one look: a call waits for it while it holds its line.
    rows = DailySpend.objects.filter(reduce(or_, parts)).order_by()
    found = rows.aggregate(**{f"sum_{number}": one for number, one in enumerate(sums)})
    return [found[f"sum_{number}"] for number in range(len(limits))]


def span_start(span: str, now: datetime) -> datetime:
    """The first moment of the day or the month, UTC."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight if span == "day" else midnight.replace(day=1)


def span_end(span: str, now: datetime) -> datetime:
    """The first moment of the next day or month, UTC."""
    start = span_start(span, now)
    return (
        start + timedelta(days=1) if span == "day" else span_start(span, start + timedelta(days=31))
    )


def _cost_caps(spender: Spender) -> Iterator[SpendLimit]:
    """The operator's: of the settings for calls with its key, or of a row of its own."""
    what, line = "limit on cost", Q(credential=spender.credential)
    rows = COST_CAPS_QUERY.all(user=spender.user_id, playbook=spender.playbook_id)
    own = {row.user_id is None: row for row in rows}
    if not spender.own_key and settings.COST_CAP_DAY_USD:
        yield SpendLimit(what, "of this server", "day", settings.COST_CAP_DAY_USD, line)
    for whose, calls, default in _scopes(spender):
        for span in SPANS:
            usd = getattr(own.get(whose == PLAYBOOK), f"usd_per_{span}", None)
            if usd is None:
                usd = ZERO if spender.own_key else default[span]
            if usd:
                yield SpendLimit(what, whose, span, usd, line & calls)


def _scopes(spender: Spender) -> Iterator[tuple[str, Q, dict[str, Decimal]]]:
    """Whose calls, which, and what the settings allow them."""
    user = {"day": settings.COST_CAP_USER_DAY_USD, "month": settings.COST_CAP_USER_MONTH_USD}
    yield ACCOUNT, Q(user=spender.user_id), user
    if spender.playbook_id:
        day, month = settings.COST_CAP_PLAYBOOK_DAY_USD, settings.COST_CAP_PLAYBOOK_MONTH_USD
        yield PLAYBOOK, Q(playbook_id=spender.playbook_id), {"day": day, "month": month}


def _budgets(spender: Spender) -> Iterator[SpendLimit]:
    """What the owner of the playbook wants to spend, with whichever key."""
    for row in BUDGETS_QUERY.all(user=spender.user_id, playbook=spender.playbook_id):
        whose, calls = ACCOUNT, Q(user=spender.user_id)
        if row.playbook_id:
            whose, calls = PLAYBOOK, Q(playbook_id=row.playbook_id)
        for span, usd in (("day", row.usd_per_day), ("month", row.usd_per_month)):
            if usd:
                yield SpendLimit("budget", whose, span, usd, calls)


USER, PLAYBOOK_ID = Param("user", UUIDField()), Param("playbook", UUIDField())
# Without a playbook the second half of each is true for no row: SQL's NULL equals nothing.
COST_CAPS_QUERY = CompiledQuery(
    lambda: CostCap.objects.filter(Q(user=USER) | Q(playbook_id=PLAYBOOK_ID))
)
BUDGETS_QUERY = CompiledQuery(
    lambda: Budget.objects.filter(
        Q(playbook_id=None) | Q(playbook_id=PLAYBOOK_ID), user=USER, stops=True
    )
)
