"""Usage pages: charts and tables of tokens and cost, and the CSV export."""

from collections.abc import Collection

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from billing.limits.spending import budgets_near_limit, list_budgets
from billing.plans.summary import PlanSummary, QuotaUsage, summarize_plan
from billing.usage.aggregation import (
    BUCKETS,
    DIMENSIONS,
    UsageCell,
    UsageTotal,
    buckets,
    total_by,
    usage_cells,
)
from billing.usage.reports import (
    CSV_HEADER,
    NameLookup,
    active_filters,
    csv_rows,
    usage_breakdowns,
    usage_charts,
)
from billing.web.forms import UsageFilterForm, parse_period
from core.csv import write_csv
from core.http.requests import UserRequest

PERIOD_LABELS = {"day": "By day", "week": "By week", "month": "By month"}


@login_required
@require_safe
def usage(request: UserRequest) -> HttpResponse:
    period, filters = parse_period(request.GET), UsageFilterForm(request.GET).chosen
    by_day, by_playbook, by_operation, by_key = (
        chart_cells(request, period, by=[part]) for part in DIMENSIONS
    )
    names = NameLookup.of(request.user, by_playbook + by_key)
    by_start = {
        start: total for start, total in total_by(by_day, lambda c: c.start).items() if start
    }
    context = {
        "period": period,
        "periods": PERIOD_LABELS,
        "span": f"{BUCKETS[period]} {period}s",
        "filters": active_filters(filters, names),
        "rows": by_start.items(),
        "total": total_by(by_day, lambda _cell: "").get("", UsageTotal()),
        "charts": usage_charts(by_start, period=period, today=timezone.now().date()),
        "breakdowns": usage_breakdowns(by_playbook, by_operation, by_key, names),
        "budget_warnings": budgets_near_limit(list_budgets(who=request.user)),
        "quota_warnings": quota_warnings(request),
    }
    return render(request, "billing/usage.html", context)


@login_required
@require_safe
def usage_csv(request: UserRequest) -> HttpResponse:
    period = parse_period(request.GET)
    cells = chart_cells(request, period)
    text = write_csv(CSV_HEADER, csv_rows(cells, NameLookup.of(request.user, cells)))
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="usage-by-{period}.csv"'
    return response


def quota_warnings(request: UserRequest) -> list[tuple[PlanSummary, QuotaUsage]]:
    """The plan's monthly limits that are nearly or fully used; none while billing is off."""
    if not settings.BILLING_ENABLED:
        return []
    summary = summarize_plan(user=request.user)
    return [(summary, quota) for quota in summary.quotas if quota.state != "open"]


def chart_cells(
    request: UserRequest, period: str, *, by: Collection[str] = DIMENSIONS
) -> list[UsageCell]:
    """Usage in the buckets that the chart shows, with the filters of the URL."""
    since = buckets(period, timezone.now().date())[0]
    filters = UsageFilterForm(request.GET).chosen
    return usage_cells(who=request.user, period=period, since=since, by=by, **filters)
