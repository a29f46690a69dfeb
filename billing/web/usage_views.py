"""Pages of usage and budgets: charts and tables of tokens and cost, the CSV export, the form."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from accounts.hooks import hooks
from billing.limits.spending import budget_rows, budgets_near_limit, list_budgets, set_budget
from billing.models import NOBODY, UsageRecord
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
from billing.web.forms import BudgetForm, UsageFilterForm, parse_period
from core.csv import write_csv
from core.errors import NotFound
from core.http.requests import UserRequest
from core.security.scopes import Principal

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


def requested_usage(request: UserRequest) -> tuple[str, dict[str, Any], QuerySet[UsageRecord]]:
    """The period and filters of the URL, and the calls in the buckets that the chart shows."""
    period, filters = parse_period(request.GET), UsageFilterForm(request.GET).chosen
    since = buckets(period, timezone.now().date())[0]
    return period, filters, usage_between(who=request.user, since=since, **filters)


@login_required
@require_safe
def budgets(request: UserRequest) -> HttpResponse:
    found = list_budgets(who=request.user)
    names = hooks.playbook_names(request.user)
    with_budget = {one.playbook_id for one in found}
    context = {
        "budgets": [(one, names.get(one.playbook_id or NOBODY)) for one in found],
        "has_account_budget": None in with_budget,
        "others": [(pk, name) for pk, name in names.items() if pk not in with_budget],
    }
    return render(request, "billing/budget_list.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit_budget(request: UserRequest) -> HttpResponse:
    """The form for the account, or for the playbook in the URL."""
    playbook_id, name = requested_playbook(request)
    rows = budget_rows(request.user).filter(playbook_id=playbook_id)
    form = BudgetForm(request.POST or None, initial=BudgetForm.values_of(rows))
    form.submit(set_budget, by=Principal.of(request.user), playbook_id=playbook_id)
    if form.is_valid():
        is_set = any(form.cleaned_data[field] for field in ("usd_per_day", "usd_per_month"))
        messages.success(request, "Budget saved." if is_set else "Budget removed.")
        return redirect("billing:budgets")
    context = {"form": form, "name": name}
    return render(request, "billing/budget_form.html", context, status=form.status)


def requested_playbook(request: UserRequest) -> tuple[UUID | None, str]:
    """The playbook in the URL and its name; (None, "") for the account. Raises NotFound."""
    if not (text := request.GET.get("playbook", "")):
        return None, ""
    for pk, name in hooks.playbook_names(request.user).items():
        if str(pk) == text:
            return pk, name
    raise NotFound("playbook")
