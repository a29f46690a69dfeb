"""Usage pages: charts and tables of tokens and cost, and the CSV export."""

from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from billing.limits.spending import budgets_near_limit, list_budgets
from billing.models import UsageRecord
from billing.plans.summary import PlanSummary, QuotaUsage, summarize_plan
from billing.usage.aggregation import (
    BUCKETS,
    START,
    buckets,
    sum_by,
    total_by,
    total_of,
    usage_between,
)
from billing.usage.reports import CSV_HEADER, csv_rows, usage_breakdowns, usage_charts
from billing.web.forms import UsageFilterForm, parse_period
from core.csv import write_csv
from core.http.requests import UserRequest

PERIOD_LABELS = {"day": "By day", "week": "By week", "month": "By month"}


@login_required
@require_safe
def usage(request: UserRequest) -> HttpResponse:
    period, filters, rows = requested_usage(request)
    by_start = total_by(sum_by(rows, START, period=period), 0)
    breakdowns, chosen = usage_breakdowns(request.user, rows, filters)
    context = {
        "period": period,
        "periods": PERIOD_LABELS,
        "span": f"{BUCKETS[period]} {period}s",
        "filters": chosen,
        "rows": by_start.items(),
        "total": total_of(by_start.values()),
        "charts": usage_charts(by_start, period=period),
        "breakdowns": breakdowns,
        "budget_warnings": budgets_near_limit(list_budgets(who=request.user)),
        "quota_warnings": quota_warnings(request),
    }
    return render(request, "billing/usage.html", context)


@login_required
@require_safe
def usage_csv(request: UserRequest) -> HttpResponse:
    period, _, rows = requested_usage(request)
    text = write_csv(CSV_HEADER, csv_rows(request.user, rows, period))
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="usage-by-{period}.csv"'
    return response


def quota_warnings(request: UserRequest) -> list[tuple[PlanSummary, QuotaUsage]]:
    """The plan's monthly limits that are nearly or fully used; none while billing is off."""
    if not settings.BILLING_ENABLED:
        return []
    summary = summarize_plan(user=request.user)
    return [(summary, quota) for quota in summary.quotas if quota.state != "open"]


def requested_usage(
    request: UserRequest,
) -> tuple[str, dict[str, Any], QuerySet[UsageRecord]]:
    """The period and filters of the URL, and the calls in the buckets that the chart shows."""
    period, filters = parse_period(request.GET), UsageFilterForm(request.GET).chosen
    since = buckets(period, timezone.now().date())[0]
    return period, filters, usage_between(who=request.user, since=since, **filters)
