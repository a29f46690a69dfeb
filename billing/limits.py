"""Who may spend what: caps on the cost of a day, which pause work and never fail it.

The ledger is the only count: what today's calls have cost, and what is set aside for those that
run. A cap holds exactly as long as the caller has locked the line that all these calls go through
(`evolution.worker.lines`). A call whose price nobody knows counts as nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.conf import settings
from django.db.models import F, Q, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from billing.models import CostCap, UsageQuerySet, UsageRecord
from billing.pricing import price_call

ZERO = Decimal(0)


class CapReached(Exception):
    """The next call could cost more than a day may; it goes on at `until`."""

    def __init__(self, whose: str, usd: Decimal, until: datetime) -> None:
        super().__init__(
            f"Today's limit on cost {whose} ({usd:.2f} US$) is reached. "
            f"The evolution goes on at {until:%H:%M} UTC, or once the limit is raised."
        )
        self.until = until


@dataclass(frozen=True)
class Spender:
    """For whom a call is made, and with what: `credential` as in the ledger.

    `own_key`: the owner's own key pays, so the operator's limits do not apply.
    """

    user_id: UUID
    playbook_id: UUID | None
    credential: str
    own_key: bool


def most_cost(*, model: str, prompt_tokens: int, completion_tokens: int, api_url: str) -> Decimal:
    """What a call can cost at most; 0 when nobody knows the price."""
    price = price_call(
        model=model,
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
        cached_tokens=0,
        at=timezone.now(),
        api_url=api_url,
    )
    return price.cost or ZERO


def refuse_over_cap(spender: Spender, *, want: Decimal, now: datetime) -> None:
    """Raise CapReached when a call of `want` US$ could take a day over one of its limits."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    today = UsageRecord.objects.filter(
        credential=spender.credential, created_at__gte=midnight
    ).order_by()
    for whose, usd, rows in _caps(spender):
        if spent(today.filter(rows)) + want > usd:
            raise CapReached(whose, usd, midnight + timedelta(days=1))


def spent(rows: UsageQuerySet) -> Decimal:
    """What these calls have cost, and what is set aside for those that still run."""
    total = Sum(Coalesce(F("cost_usd"), ZERO) + F("held_usd"), default=ZERO)
    cost: Decimal = rows.aggregate(total=total)["total"]
    return cost


def _caps(spender: Spender) -> Iterator[tuple[str, Decimal, Q]]:
    """Whose limit, how much, and which of the credential's calls count."""
    if not spender.own_key and settings.COST_CAP_DAY_USD:
        yield "of this server", settings.COST_CAP_DAY_USD, Q()
    own = _own_caps(spender)
    for_all = not spender.own_key
    user = own.get("user", settings.COST_CAP_USER_DAY_USD if for_all else ZERO)
    if user:
        yield "of this account", user, Q(user=spender.user_id)
    playbook = own.get("playbook", settings.COST_CAP_PLAYBOOK_DAY_USD if for_all else ZERO)
    if playbook and spender.playbook_id:
        yield "of this playbook", playbook, Q(playbook_id=spender.playbook_id)


def _own_caps(spender: Spender) -> dict[str, Decimal]:
    whose = Q(user=spender.user_id)
    if spender.playbook_id:
        whose |= Q(playbook_id=spender.playbook_id)
    rows = CostCap.objects.filter(whose)
    return {"user" if row.user_id else "playbook": row.usd_per_day for row in rows}
