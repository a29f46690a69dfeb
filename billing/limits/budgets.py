"""Daily and monthly budgets of users: set them, read how much is spent, e-mail warnings."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, Sum

from accounts.hooks import hooks
from accounts.models import User
from billing.limits.cost_caps import SPANS, ZERO, span_end, span_start
from billing.models import Budget, CostCap, DailySpend, UsageRecord
from core.audit import record
from core.clock import database_now
from core.emails import send_email
from core.errors import Invalid, NotFound
from core.security.scopes import Principal

MAX_AMOUNT = Decimal("99999999.99")
MIN_AMOUNT = Decimal("0.01")
RECENT_USAGE = timedelta(minutes=15)
WARNING_INTERVAL = 60
"""Seconds."""
BATCH_SIZE = 500


@dataclass(frozen=True)
class BudgetStatus:
    """How much of one amount is spent; running calls count with their maximum cost.

    `unpriced_calls` are not in the total: their price is unknown.
    """

    span: str
    limit_usd: Decimal
    spent_usd: Decimal
    unpriced_calls: int
    warn_percent: int
    until: datetime

    @property
    def percent(self) -> int:
        return int(100 * self.spent_usd / self.limit_usd)

    @property
    def state(self) -> str:
        """`ok`, `warning` from `warn_percent` on, or `reached`."""
        if self.percent >= 100:
            return "reached"
        return "warning" if self.percent >= self.warn_percent else "ok"


@dataclass(frozen=True)
class BudgetWithStatus:
    """A budget and how much of it is spent today and this month."""

    budget: Budget
    day: BudgetStatus | None
    month: BudgetStatus | None

    @property
    def statuses(self) -> list[BudgetStatus]:
        return [one for one in (self.day, self.month) if one is not None]


def set_budget(
    *,
    by: Principal,
    playbook_id: UUID | None = None,
    usd_per_day: Decimal | None = None,
    usd_per_month: Decimal | None = None,
    warn_percent: int = 80,
    stops: bool = True,
) -> Budget | None:
    """Set the budget of the user's account or of one playbook; without an amount, remove it.

    Raises Invalid, NotFound.
    """
    _validate(usd_per_day=usd_per_day, usd_per_month=usd_per_month, percent=warn_percent)
    if playbook_id is not None and not hooks.playbook_names(by, ids=[playbook_id]):
        raise NotFound("playbook")
    if playbook_id is None and by.playbook_ids is not None:
        raise NotFound("budget")
    with transaction.atomic():
        # Lock the user: there may be no budget row yet, and two requests would both create one.
        user = User.objects.select_for_update(of=("self",), no_key=True).get(pk=by.user.pk)
        budget = Budget.objects.filter(user=user, playbook_id=playbook_id).first()
        budget = budget or Budget(user=user, playbook_id=playbook_id)
        if usd_per_day is None and usd_per_month is None:
            if not budget._state.adding:
                record(action="remove_budget", by=by, subject=budget)
                budget.delete()
            return None
        budget.usd_per_day, budget.usd_per_month = usd_per_day, usd_per_month
        budget.warn_percent, budget.stops = warn_percent, stops
        # A new amount gets its own warning.
        budget.warned_day = budget.warned_month = None
        budget.save()
        detail: dict[str, Any] = {"stops": stops} | amounts_of(budget)
        detail["playbook"] = None if playbook_id is None else str(playbook_id)
        record(action="set_budget", by=by, subject=budget, **detail)
    return budget


def list_budgets(*, who: User | Principal) -> list[BudgetWithStatus]:
    """The user's budgets with their status, the account's first; one query without any."""
    rows = list(Budget.objects.for_user(who).order_by("playbook_id"))
    rows.sort(key=lambda row: row.playbook_id is not None)
    return with_status(rows, now=database_now()) if rows else []


def with_status(budgets: Iterable[Budget], *, now: datetime) -> list[BudgetWithStatus]:
    """The status of each budget: one query for the accounts, one for the playbooks."""
    rows = list(budgets)
    users = {row.user_id for row in rows if row.playbook_id is None}
    playbooks = {row.playbook_id for row in rows if row.playbook_id is not None}
    spent = _spent_by_owner("user_id", users, now) | _spent_by_owner("playbook_id", playbooks, now)
    return [
        _budget_with_status(row, spent.get(row.playbook_id or row.user_id, {}), now) for row in rows
    ]


def send_budget_warnings() -> int:
    """E-mail users who came near a budget, once for each day and month; returns how many.

    Not inside a transaction; once a minute, by whichever host comes first.
    """
    if not cache.add("budget-warnings", 1, WARNING_INTERVAL):
        return 0
    now = database_now()
    begun = UsageRecord.objects.filter(user=OuterRef("user"), created_at__gte=now - RECENT_USAGE)
    rows = Budget.objects.filter(_unwarned(now), Exists(begun), user__is_active=True)
    ids = list(rows.order_by("pk").values_list("pk", flat=True))
    sent = 0
    for at in range(0, len(ids), BATCH_SIZE):
        rows = Budget.objects.filter(pk__in=ids[at : at + BATCH_SIZE])
        for budget, status in budgets_near_limit(with_status(rows, now=now)):
            sent += _send_warning(budget, status, now)
    return sent


def budgets_near_limit(
    budgets: Iterable[BudgetWithStatus],
) -> list[tuple[Budget, BudgetStatus]]:
    """The daily and monthly amounts that are reached or nearly so."""
    found = [(one.budget, status) for one in budgets for status in one.statuses]
    return [(budget, status) for budget, status in found if status.state != "ok"]


def _send_warning(budget: Budget, status: BudgetStatus, now: datetime) -> int:
    name, today = f"warned_{status.span}", span_start(status.span, now).date()
    rows = Budget.objects.filter(Q(**{name: None}) | Q(**{f"{name}__lt": today}), pk=budget.pk)
    # Recorded first: an e-mail lost with its process is better than one each minute.
    if not rows.update(**{name: today}):
        return 0
    send_email(
        "budget",
        to=User.objects.get(pk=budget.user_id).email,
        site=settings.PUBLIC_URL,
        percent=str(status.percent),
        spent=f"{status.spent_usd:.2f}",
        limit=f"{status.limit_usd:.2f}",
        span=status.span,
        whose="one of your playbooks" if budget.playbook_id else "your account",
        stops="yes" if budget.stops else "",
        until=f"{status.until:%H:%M} UTC on {status.until.day} {status.until:%B}",
    )
    return 1


def _unwarned(now: datetime) -> Q:
    found = Q(pk__in=[])
    for span in SPANS:
        start: date = span_start(span, now).date()
        unwarned = Q(**{f"warned_{span}": None}) | Q(**{f"warned_{span}__lt": start})
        found |= Q(**{f"usd_per_{span}__isnull": False}) & unwarned
    return found


def _spent_by_owner(field: str, ids: Iterable[UUID], now: datetime) -> dict[UUID, dict[str, Any]]:
    """What each of these users, or playbooks, has spent today and this month."""
    wanted = list(ids)
    if not wanted:
        return {}
    today = Q(day__gte=span_start("day", now).date())
    rows = DailySpend.objects.filter(day__gte=span_start("month", now).date()).order_by()
    sums = rows.filter(**{f"{field}__in": wanted}).values(field)
    found = sums.annotate(
        day_spent=Sum("spent_usd", filter=today, default=ZERO),
        month_spent=Sum("spent_usd", default=ZERO),
        day_unpriced=Sum("unpriced_calls", filter=today, default=0),
        month_unpriced=Sum("unpriced_calls", default=0),
    )
    return {row[field]: row for row in found}


def _budget_with_status(budget: Budget, spent: dict[str, Any], now: datetime) -> BudgetWithStatus:
    def status(span: str, usd: Decimal | None) -> BudgetStatus | None:
        if usd is None:
            return None
        return BudgetStatus(
            span=span,
            limit_usd=usd,
            spent_usd=spent.get(f"{span}_spent", ZERO),
            unpriced_calls=spent.get(f"{span}_unpriced", 0),
            warn_percent=budget.warn_percent,
            until=span_end(span, now),
        )

    return BudgetWithStatus(
        budget, status("day", budget.usd_per_day), status("month", budget.usd_per_month)
    )


def amounts_of(row: Budget | CostCap) -> dict[str, str | None]:
    """The daily and the monthly amount for the audit log."""
    amounts = {"day": row.usd_per_day, "month": row.usd_per_month}
    return {span: None if usd is None else str(usd) for span, usd in amounts.items()}


def _validate(*, percent: int, **amounts: Decimal | None) -> None:
    for name, usd in amounts.items():
        if usd is not None and not MIN_AMOUNT <= usd <= MAX_AMOUNT:
            raise Invalid.field(
                name, f"Must be between {MIN_AMOUNT} and {MAX_AMOUNT} US$, or null."
            )
    if not 1 <= percent <= 100:
        raise Invalid.field("warn_percent", "Must be a whole number from 1 to 100.")
