"""Pages: what the models used and cost, as charts and tables, and the same as CSV."""

from collections.abc import Collection
from datetime import date

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounts.http import UserRequest
from accounts.tables import write_csv
from billing.breakdowns import BUCKETS, EVERY_WAY, Cell, Total, buckets, total_by, usage_cells
from billing.budgets import Standing, list_budgets
from billing.forms import UsageFilter, period_of
from billing.models import Budget
from billing.own_plan import OwnPlan, Quota, read_plan
from billing.shown import HEADS, Names, breakdowns_of, charts_of, narrowed_to, table_of

PERIODS = {"day": "By day", "week": "By week", "month": "By month"}


@login_required
@require_safe
def usage(request: UserRequest) -> HttpResponse:
    period, chosen = period_of(request.GET), UsageFilter(request.GET).chosen
    by_day, by_playbook, by_operation, by_key = (
        cells_of(request, period, by=[part]) for part in EVERY_WAY
    )
    names = Names.of(request.user, by_playbook + by_key)
    by_start = {start: total for start, total in total_by(by_day, start_of).items() if start}
    context = {
        "period": period,
        "periods": PERIODS,
        "span": f"{BUCKETS[period]} {period}s",
        "narrowed": narrowed_to(chosen, names),
        "rows": by_start.items(),
        "total": total_by(by_day, lambda _cell: "").get("", Total()),
        "charts": charts_of(by_start, period=period, today=timezone.now().date()),
        "breakdowns": breakdowns_of(by_playbook, by_operation, by_key, names),
        "alarms": budget_alarms(request),
        "plan_alarms": plan_alarms(request),
    }
    return render(request, "billing/usage.html", context)


@login_required
@require_safe
def usage_csv(request: UserRequest) -> HttpResponse:
    period = period_of(request.GET)
    cells = cells_of(request, period)
    text = write_csv(HEADS, table_of(cells, Names.of(request.user, cells)))
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="usage-by-{period}.csv"'
    return response


def budget_alarms(request: UserRequest) -> list[tuple[Budget, Standing]]:
    """The budgets that are near their end, or at it."""
    watched = list_budgets(who=request.user)
    found = [(one.budget, standing) for one in watched for standing in one.standings]
    return [(budget, standing) for budget, standing in found if standing.state != "ok"]


def plan_alarms(request: UserRequest) -> list[tuple[OwnPlan, Quota]]:
    """What of the plan's month is nearly, or wholly, used; nothing while billing is off."""
    if not settings.BILLING_ENABLED:
        return []
    own = read_plan(user=request.user)
    return [(own, quota) for quota in own.quotas if quota.state != "open"]


def start_of(cell: Cell) -> date | None:
    return cell.start


def cells_of(request: UserRequest, period: str, *, by: Collection[str] = EVERY_WAY) -> list[Cell]:
    """What was used in the buckets that the chart shows, narrowed as the URL says."""
    since = buckets(period, timezone.now().date())[0]
    chosen = UsageFilter(request.GET).chosen
    return usage_cells(who=request.user, period=period, since=since, by=by, **chosen)
