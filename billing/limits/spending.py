"""Daily and monthly limits on cost, the operator's and the owners' budgets; jobs over one wait.

What calls have cost and what is reserved for running ones is read from the daily totals
(DailySpend), so that a busy month is checked as quickly as an empty one. The operator's limits
count the calls with its keys, deleted accounts' too; a limit of a single account or playbook binds
the owner's own key as well. They are exact while the caller holds the lock of its provider circuit
(`evolution.worker.llm_admission`); only while a key is being replaced can two circuits exceed one
side by side. A call of unknown price counts as nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Sum

from accounts.hooks import hooks
from accounts.models import User
from billing.errors import LimitReached
from billing.models import DailySpend, Limit, UsageRecord
from billing.plans.entitlements import find_limits
from billing.pricing.usage_pricing import price_in_usd
from core.audit import record
from core.clock import database_now
from core.emails import send_email
from core.errors import NotFound
from core.security.scopes import Principal

ZERO = Decimal(0)
COST_CAP = "cost_cap"
SPANS = ("day", "month")
WHOSE = {
    Limit.Scope.SERVER: "of this server",
    Limit.Scope.ACCOUNT: "of this account",
    Limit.Scope.PLAYBOOK: "of this playbook",
}
MIN_AMOUNT = Decimal("0.01")
RECENT_USAGE = timedelta(minutes=15)
WARNING_INTERVAL = 60
"""Seconds."""
BATCH_SIZE = 500
LIMITS_PER_QUERY = 100


class SpendLimitReached(LimitReached):
    """The next call could exceed a daily or monthly limit."""

    def __init__(self, limit: Limit, until: datetime, want: Decimal, credential: str) -> None:
        what = "budget" if limit.set_by == Limit.SetBy.OWNER else "cost limit"
        usd, day = limit.amount or ZERO, "Today" if limit.window == "day" else "This month"
        which = f"{day}'s {what} {WHOSE[Limit.Scope(limit.scope)]}"
        message = (
            f"{which} (${usd:.2f}) is reached. Evolutions resume at {until:%H:%M} UTC on "
            f"{until.day} {until:%B}, or once the {what} is raised."
        )
        if want > usd:
            message = (
                f"{which} (${usd:.2f}) is less than the next call can cost (${want:.2f}). "
                f"Evolutions resume once the {what} is raised."
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
    return price_in_usd(model, prompt_tokens, completion_tokens, api_url) or ZERO


def check_spend_limits(spender: Spender, *, want: Decimal, now: datetime) -> None:
    """Raise SpendLimitReached when a call of `want` US$ could exceed a limit."""
    limits = list(_limits(spender))
    # In one query: the caller holds the lock of its provider circuit.
    spent = _spent([(one, _calls(one, spender)) for one in limits], now)
    for one, (usd, _) in zip(limits, spent, strict=True):
        if usd + want > (one.amount or ZERO):
            raise SpendLimitReached(one, span_end(one.window, now), want, spender.credential)


def _spent(parts: Sequence[tuple[Limit, Q]], now: datetime) -> list[tuple[Decimal, int]]:
    """What these calls cost in the limits' days or months, and how many have no known price."""
    found: list[tuple[Decimal, int]] = []
    for at in range(0, len(parts), LIMITS_PER_QUERY):
        spans = [
            calls & Q(day__gte=span_start(limit.window, now))
            for limit, calls in parts[at : at + LIMITS_PER_QUERY]
        ]
        sums: dict[str, Any] = {}
        for number, span in enumerate(spans):
            sums[f"usd_{number}"] = Sum("spent_usd", filter=span, default=ZERO)
            sums[f"unpriced_{number}"] = Sum("unpriced_calls", filter=span, default=0)
        row = DailySpend.objects.filter(reduce(or_, spans)).order_by().aggregate(**sums)
        found += [(row[f"usd_{n}"], row[f"unpriced_{n}"]) for n in range(len(spans))]
    return found


def _limits(spender: Spender) -> Iterator[Limit]:
    """The rows that bind the call: the operator's, wider scopes first, then the owner's."""
    rows = find_limits(user_id=spender.user_id, playbook_id=spender.playbook_id)
    rows = [row for row in rows if row.unit == Limit.Unit.USD]
    operators: dict[tuple[str, str], Limit] = {}
    for row in sorted(rows, key=lambda row: row.is_for_all):
        if row.set_by == Limit.SetBy.OPERATOR:
            operators.setdefault((row.scope, row.window), row)
    for scope in Limit.Scope.values:
        for span in SPANS:
            one = operators.get((scope, span))
            if one is None or one.amount is None or (spender.own_key and one.is_for_all):
                continue
            if scope != Limit.Scope.PLAYBOOK or spender.playbook_id:
                yield one
    yield from (row for row in rows if row.set_by == Limit.SetBy.OWNER and row.stops)


def _calls(limit: Limit, spender: Spender) -> Q:
    """The rows of DailySpend that count against the limit."""
    counted = {
        Limit.Scope.SERVER: Q(),
        Limit.Scope.ACCOUNT: Q(user_id=spender.user_id),
        Limit.Scope.PLAYBOOK: Q(playbook_id=spender.playbook_id),
    }[Limit.Scope(limit.scope)]
    is_owners = limit.set_by == Limit.SetBy.OWNER
    return counted if is_owners else counted & Q(own_key=spender.own_key)


def span_start(span: str, now: datetime) -> date:
    """The first day of the day or the month, UTC."""
    return now.date() if span == "day" else now.date().replace(day=1)


def span_end(span: str, now: datetime) -> datetime:
    """The first moment of the next day or month, UTC."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if span == "day":
        return midnight + timedelta(days=1)
    return (midnight.replace(day=1) + timedelta(days=31)).replace(day=1)


@dataclass(frozen=True)
class BudgetStatus:
    """How much of one amount is spent; running calls count with their maximum cost.

    `unpriced_calls` are not in the total: their price is unknown.
    """

    limit: Limit
    spent_usd: Decimal
    unpriced_calls: int
    until: datetime

    @property
    def percent(self) -> int:
        return int(100 * self.spent_usd / (self.limit.amount or MIN_AMOUNT))

    @property
    def state(self) -> str:
        """`ok`, `warning` from `warn_percent` on, or `reached`."""
        if self.percent >= 100:
            return "reached"
        return "warning" if self.percent >= self.limit.warn_percent else "ok"


@dataclass(frozen=True)
class Budget:
    """The daily and the monthly amount that an owner set for the account or one playbook."""

    playbook_id: UUID | None
    statuses: list[BudgetStatus] = field(default_factory=list)

    @property
    def settings(self) -> Limit:
        """The row with `warn_percent` and `stops`, the same for both amounts."""
        return self.statuses[0].limit if self.statuses else Limit()

    @property
    def day(self) -> BudgetStatus | None:
        return next((one for one in self.statuses if one.limit.window == "day"), None)

    @property
    def month(self) -> BudgetStatus | None:
        return next((one for one in self.statuses if one.limit.window == "month"), None)


def set_budget(
    *,
    by: Principal,
    playbook_id: UUID | None = None,
    usd_per_day: Decimal | None = None,
    usd_per_month: Decimal | None = None,
    warn_percent: int = 80,
    stops: bool = True,
) -> None:
    """Set the budget of the user's account or of one playbook; without an amount, remove it.

    Raises NotFound. Amounts are of MIN_AMOUNT at least, `warn_percent` is 1 to 100.
    """
    amounts = {"day": usd_per_day, "month": usd_per_month}
    if playbook_id is not None and not hooks.playbook_names(by, ids=[playbook_id]):
        raise NotFound("playbook")
    if playbook_id is None and by.playbook_ids is not None:
        raise NotFound("budget")
    with transaction.atomic():
        # Lock the user: there may be no row yet, and two requests would both create one.
        user = User.objects.select_for_update(of=("self",), no_key=True).get(pk=by.user.pk)
        scope = Limit.Scope.PLAYBOOK if playbook_id else Limit.Scope.ACCOUNT
        of = {"set_by": "owner", "user": user, "playbook_id": playbook_id, "unit": "usd"}
        known = Limit.objects.filter(**of)
        if any(amounts.values()) or known.exists():
            detail: dict[str, Any] = {span: usd and str(usd) for span, usd in amounts.items()}
            verb = "set" if any(amounts.values()) else "remove"
            if verb == "set":
                detail |= {"stops": stops, "playbook": playbook_id and str(playbook_id)}
            record(action=f"{verb}_budget", by=by, subject=user, **detail)
        # A new amount gets its own warning.
        known.delete()
        Limit.objects.bulk_create(
            Limit(
                **of, scope=scope, window=span, amount=usd, warn_percent=warn_percent, stops=stops
            )
            for span, usd in amounts.items()
            if usd is not None
        )


def budget_rows(who: User | Principal) -> QuerySet[Limit]:
    """The amounts that the user has set, of the account and of playbooks."""
    return Limit.objects.for_user(who).filter(set_by=Limit.SetBy.OWNER, unit=Limit.Unit.USD)


def list_budgets(*, who: User | Principal) -> list[Budget]:
    """The user's budgets with their status, the account's first; one query without any."""
    rows, found = list(budget_rows(who).order_by("window")), dict[UUID | None, Budget]()
    for status in _statuses(rows, now=database_now()) if rows else ():
        playbook = status.limit.playbook_id
        found.setdefault(playbook, Budget(playbook)).statuses.append(status)
    return [found[pk] for pk in sorted(found, key=lambda pk: (pk is not None, str(pk)))]


def budgets_near_limit(budgets: Iterable[Budget]) -> list[tuple[Budget, BudgetStatus]]:
    """The daily and monthly amounts that are reached or nearly so."""
    found = [(one, status) for one in budgets for status in one.statuses]
    return [(budget, status) for budget, status in found if status.state != "ok"]


def send_budget_warnings() -> int:
    """E-mail users who came near a budget, once for each day and month; returns how many.

    Not inside a transaction; once a minute, by whichever host comes first.
    """
    if not cache.add("budget-warnings", 1, WARNING_INTERVAL):
        return 0
    now = database_now()
    begun = UsageRecord.objects.filter(user=OuterRef("user"), created_at__gte=now - RECENT_USAGE)
    rows = Limit.objects.filter(_unwarned(now), Exists(begun), set_by="owner", unit="usd")
    rows = rows.filter(user__is_active=True).order_by("pk")
    ids, sent = list(rows.values_list("pk", flat=True)), 0
    for at in range(0, len(ids), BATCH_SIZE):
        part = Limit.objects.filter(pk__in=ids[at : at + BATCH_SIZE])
        for status in _statuses(part.select_related("user"), now=now):
            if status.state != "ok":
                sent += _send_warning(status.limit, status, now)
    return sent


def _send_warning(limit: Limit, status: BudgetStatus, now: datetime) -> int:
    rows = Limit.objects.filter(_unwarned(now), pk=limit.pk)
    # Recorded first: an e-mail lost with its process is better than one each minute.
    if limit.user is None or not rows.update(warned_on=now.date()):
        return 0
    send_email(
        "budget",
        to=limit.user.email,
        site=settings.PUBLIC_URL,
        percent=str(status.percent),
        spent=f"{status.spent_usd:.2f}",
        limit=f"{limit.amount:.2f}",
        span=limit.window,
        whose="one of your playbooks" if limit.playbook_id else "your account",
        stops="yes" if limit.stops else "",
        until=f"{status.until:%H:%M} UTC on {status.until.day} {status.until:%B}",
    )
    return 1


def _unwarned(now: datetime) -> Q:
    before = {span: Q(window=span, warned_on__lt=span_start(span, now)) for span in SPANS}
    return Q(warned_on=None) | before["day"] | before["month"]


def _statuses(rows: Iterable[Limit], *, now: datetime) -> Iterator[BudgetStatus]:
    """The status of each owner's row."""
    limits = list(rows)
    parts = [
        (row, Q(playbook_id=row.playbook_id) if row.playbook_id else Q(user_id=row.user_id))
        for row in limits
    ]
    for row, (usd, unpriced) in zip(limits, _spent(parts, now), strict=True):
        yield BudgetStatus(row, usd, unpriced, span_end(row.window, now))
