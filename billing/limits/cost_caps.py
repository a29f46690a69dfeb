"""Daily and monthly cost limits, which pause jobs and never fail them.

What calls have cost and what is reserved for running ones is read from the daily totals
(DailySpend), so that a busy month is checked as quickly as an empty one. The operator's caps count
the calls of one credential and are exact while the caller holds the lock of its provider circuit
(`evolution.worker.llm_admission`). A user's budget counts the calls with every key of theirs; only
while a key is being replaced can two circuits exceed it side by side. A call of unknown price
counts as nothing.
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
    """An amount for a day or a month, and which rows of DailySpend count."""

    what: str
    whose: str
    span: str
    usd: Decimal
    calls: Q


class SpendLimitReached(LimitReached):
    """The next call could exceed a daily or monthly limit."""

    def __init__(self, limit: SpendLimit, until: datetime, want: Decimal, credential: str) -> None:
        which = f"{'Today' if limit.span == 'day' else 'This month'}'s {limit.what} {limit.whose}"
        message = (
            f"{which} ({limit.usd:.2f} US$) is reached. Evolutions resume at {until:%H:%M} UTC on "
            f"{until.day} {until:%B}, or once the {limit.what} is raised."
        )
        if want > limit.usd:
            message = (
                f"{which} ({limit.usd:.2f} US$) is less than the next call can cost "
                f"({want:.2f} US$). Evolutions resume once the {limit.what} is raised."
            )
        super().__init__(message)
        self.code, self.until, self.mark, self.want = COST_CAP, until, credential, want


@dataclass(frozen=True)
class Spender:
    """For whom a call is made, and its `credential` as in UsageRecord.

    `own_key`: the owner's own key pays, so the operator's limits do not apply.
    """

    user_id: UUID
    playbook_id: UUID | None
    credential: str
    own_key: bool


def max_cost(*, model: str, prompt_tokens: int, completion_tokens: int, api_url: str) -> Decimal:
    """The maximum cost of a call; 0 when its price is unknown."""
    price = estimate_cost(
        model=model,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        api_url=api_url,
    )
    return price.cost or ZERO


def check_spend_limits(spender: Spender, *, want: Decimal, now: datetime) -> None:
    """Raise SpendLimitReached when a call of `want` US$ could exceed a limit."""
    limits = [*_cost_caps(spender), *_budgets(spender)]
    for limit, spent in zip(limits, _spent_so_far(limits, now), strict=True):
        if spent + want > limit.usd:
            raise SpendLimitReached(limit, span_end(limit.span, now), want, spender.credential)


def _spent_so_far(limits: list[SpendLimit], now: datetime) -> list[Decimal]:
    """What counts against each limit so far, amounts reserved for running calls included."""
    if not limits:
        return []
    parts = [one.calls & Q(day__gte=span_start(one.span, now).date()) for one in limits]
    sums = [Sum("spent_usd", filter=part, default=ZERO) for part in parts]
    # In one query: the caller holds the lock of its provider circuit.
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
    return span_start(span, start + timedelta(days=1 if span == "day" else 31))


def _cost_caps(spender: Spender) -> Iterator[SpendLimit]:
    """The operator's limits: of the settings for calls with its key, or of a CostCap."""
    what, same_credential = "cost limit", Q(credential=spender.credential)
    rows = COST_CAPS_QUERY.all(user=spender.user_id, playbook=spender.playbook_id)
    own = {row.user_id is None: row for row in rows}
    if not spender.own_key and settings.COST_CAP_DAY_USD:
        yield SpendLimit(what, "of this server", "day", settings.COST_CAP_DAY_USD, same_credential)
    for whose, calls, default in _scopes(spender):
        for span in SPANS:
            usd = getattr(own.get(whose == PLAYBOOK), f"usd_per_{span}", None)
            if usd is None:
                usd = ZERO if spender.own_key else default[span]
            if usd:
                yield SpendLimit(what, whose, span, usd, same_credential & calls)


def _scopes(spender: Spender) -> Iterator[tuple[str, Q, dict[str, Decimal]]]:
    """The scopes of a limit: its name, its calls, and the limits of the settings."""
    user = {"day": settings.COST_CAP_USER_DAY_USD, "month": settings.COST_CAP_USER_MONTH_USD}
    yield ACCOUNT, Q(user=spender.user_id), user
    if spender.playbook_id:
        day, month = settings.COST_CAP_PLAYBOOK_DAY_USD, settings.COST_CAP_PLAYBOOK_MONTH_USD
        yield PLAYBOOK, Q(playbook_id=spender.playbook_id), {"day": day, "month": month}


def _budgets(spender: Spender) -> Iterator[SpendLimit]:
    """The budgets of the playbook's owner, for calls with any key."""
    for row in BUDGETS_QUERY.all(user=spender.user_id, playbook=spender.playbook_id):
        whose, calls = ACCOUNT, Q(user=spender.user_id)
        if row.playbook_id:
            whose, calls = PLAYBOOK, Q(playbook_id=row.playbook_id)
        for span, usd in (("day", row.usd_per_day), ("month", row.usd_per_month)):
            if usd:
                yield SpendLimit("budget", whose, span, usd, calls)


USER, PLAYBOOK_ID = Param("user", UUIDField()), Param("playbook", UUIDField())
# Without a playbook the second condition of each matches no row: in SQL, NULL equals nothing.
COST_CAPS_QUERY = CompiledQuery(
    lambda: CostCap.objects.filter(Q(user=USER) | Q(playbook_id=PLAYBOOK_ID))
)
BUDGETS_QUERY = CompiledQuery(
    lambda: Budget.objects.filter(
        Q(playbook_id=None) | Q(playbook_id=PLAYBOOK_ID), user=USER, stops=True
    )
)
