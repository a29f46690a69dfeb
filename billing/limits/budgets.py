"""What a person wants to spend in a day or a month: set, watched, and told of in time."""

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

from accounts.models import User
from billing.limits.cost_caps import SPANS, ZERO, span_end, span_start
from billing.models import Budget, DailySpend, UsageRecord
from core.audit import record
from core.clock import database_now
from core.emails import send_email
from core.errors import Invalid, NotFound
from core.security.scopes import Principal

MAX_AMOUNT = Decimal("99999999.99")
MIN_AMOUNT = Decimal("0.01")
RECENT_USAGE = timedelta(minutes=15)
EVERY, AT_ONCE = 60, 500


@dataclass(frozen=True)
class BudgetStatus:
    """How much of one amount is spent; what runs at this moment counts with the most it can cost.

    `unpriced_calls` are in no sum: nobody knows what they cost.
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
        """`ok`, `warning` from the percentage on that was chosen, or `reached`."""
        if self.percent >= 100:
            return "reached"
        return "warning" if self.percent >= self.warn_percent else "ok"


@dataclass(frozen=True)
class BudgetWithStatus:
    """A budget and how it stands in its day and its month."""

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
    """The person's account, or their playbook, has this budget; without an amount it has none.

    Raises Invalid, NotFound.
    """
    _validate(usd_per_day=usd_per_day, usd_per_month=usd_per_month, percent=warn_percent)
    if playbook_id is not None:
        playbooks: Any = by.user.playbooks
        playbooks.for_user(by).fetch(playbook_id)
    elif by.playbook_ids is not None:
        raise NotFound("budget")
    with transaction.atomic():
        # The user's row, for there may be no budget yet: two at once would both make one.
        user = User.objects.select_for_update(of=("self",), no_key=True).get(pk=by.user.pk)
        budget = Budget.objects.filter(user=user, playbook_id=playbook_id).first()
        budget = budget or Budget(user=user, playbook_id=playbook_id)
        if usd_per_day is None and usd_per_month is None:
            _remove(budget, by)
            return None
        budget.usd_per_day, budget.usd_per_month = usd_per_day, usd_per_month
        budget.warn_percent, budget.stops = warn_percent, stops
        # Another amount is worth another letter.
        budget.warned_day = budget.warned_month = None
        budget.save()
        record(
            action="set_budget",
            by=by,
            subject=budget,
            stops=stops,
            day=_str_or_none(usd_per_day),
            month=_str_or_none(usd_per_month),
            playbook=_str_or_none(playbook_id),
        )
    return budget


def list_budgets(*, who: User | Principal) -> list[BudgetWithStatus]:
    """The person's budgets, the account's first, as they stand now; one query without any."""
    rows = list(Budget.objects.for_user(who).order_by("playbook_id"))
    rows.sort(key=lambda row: row.playbook_id is not None)
    return with_status(rows, now=database_now()) if rows else []


def with_status(budgets: Iterable[Budget], *, now: datetime) -> list[BudgetWithStatus]:
    """How each of these budgets stands: one query for the accounts, one for the playbooks."""
    rows = list(budgets)
    users = {row.user_id for row in rows if row.playbook_id is None}
    playbooks = {row.playbook_id for row in rows if row.playbook_id is not None}
    spent = _spent_by_owner("user_id", users, now) | _spent_by_owner("playbook_id", playbooks, now)
    return [
        _budget_with_status(row, spent.get(row.playbook_id or row.user_id, {}), now) for row in rows
    ]


def send_budget_warnings() -> int:
    """Who came near a budget of theirs is told by a letter: one for each day and month.

    Returns how many. Not inside a transaction; once a minute, by whichever host comes first.
    """
    if not cache.add("budget-warnings", 1, EVERY):
        return 0
    now = database_now()
    begun = UsageRecord.objects.filter(user=OuterRef("user"), created_at__gte=now - RECENT_USAGE)
    rows = Budget.objects.filter(_unwarned(now), Exists(begun), user__is_active=True)
    ids = list(rows.order_by("pk").values_list("pk", flat=True))
    parts = [ids[at : at + AT_ONCE] for at in range(0, len(ids), AT_ONCE)]
    return sum(_send_warnings(Budget.objects.filter(pk__in=part), now) for part in parts)


def _send_warnings(rows: Iterable[Budget], now: datetime) -> int:
    watched = with_status(rows, now=now)
    near = [(one.budget, s) for one in watched for s in one.statuses if s.state != "ok"]
    return sum(_send_warning(budget, standing, now) for budget, standing in near)


def _send_warning(budget: Budget, standing: BudgetStatus, now: datetime) -> int:
    name, today = f"warned_{standing.span}", span_start(standing.span, now).date()
    rows = Budget.objects.filter(Q(**{name: None}) | Q(**{f"{name}__lt": today}), pk=budget.pk)
    # Marked first: a letter that is lost with its process is better than one each minute.
    if not rows.update(**{name: today}):
        return 0
    send_email(
        "budget",
        to=User.objects.get(pk=budget.user_id).email,
        site=settings.PUBLIC_URL,
        percent=str(standing.percent),
        spent=f"{standing.spent_usd:.2f}",
        limit=f"{standing.limit_usd:.2f}",
        span="day" if standing.span == "day" else "month",
        whose="one of your playbooks" if budget.playbook_id else "your account",
        stops="yes" if budget.stops else "",
        until=f"{standing.until:%H:%M} UTC on {standing.until.day} {standing.until:%B}",
    )
    return 1


def _unwarned(now: datetime) -> Q:
    found = Q(pk__in=[])
    for span in SPANS:
        start: date = span_start(span, now).date()
        told = Q(**{f"warned_{span}": None}) | Q(**{f"warned_{span}__lt": start})
        found |= Q(**{f"usd_per_{span}__isnull": False}) & told
    return found


def _spent_by_owner(field: str, ids: Iterable[UUID], now: datetime) -> dict[UUID, dict[str, Any]]:
    """What each of these users, or playbooks, has spent in this day and this month."""
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
    def stand(span: str, usd: Decimal | None) -> BudgetStatus | None:
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
        budget, stand("day", budget.usd_per_day), stand("month", budget.usd_per_month)
    )


def _str_or_none(value: Decimal | UUID | None) -> str | None:
    return None if value is None else str(value)


def _remove(budget: Budget, by: Principal) -> None:
    if not budget._state.adding:
        record(action="remove_budget", by=by, subject=budget)
        budget.delete()


def _validate(*, percent: int, **amounts: Decimal | None) -> None:
    for name, usd in amounts.items():
        if usd is not None and not MIN_AMOUNT <= usd <= MAX_AMOUNT:
            raise Invalid.field(
                name, f"Send an amount from {MIN_AMOUNT} to {MAX_AMOUNT} US$, or null."
            )
    if not 1 <= percent <= 100:
        raise Invalid.field("warn_percent", "Send a whole number from 1 to 100.")
