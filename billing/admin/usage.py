"""The admin of usage records: the list of calls and a summary page."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from billing.models import UsageRecord
from billing.usage.aggregation import START, UsageTotal, sum_by, total_by, total_of
from core.admin import ReadOnlyAdmin

# Groups of the summary: the field, and the list filter that selects one group.
GROUP_FIELDS = {
    "user": ("user__email", "user__email"),
    "playbook": ("playbook_id", "playbook_id"),
    "model": ("model", "model"),
    "operation": ("operation", "operation__exact"),
    "key": ("api_key_id", "api_key_id"),
    "price source": ("price_source", "price_source"),
    "day": (START, ""),
    "week": (START, ""),
    "month": (START, ""),
}
TIME_RANGES = {"31": "31 days", "366": "366 days", "all": "all time"}
MAX_SUMMARY_ROWS = 500


@dataclass(frozen=True)
class SummaryRow:
    """Usage of one group; `query` selects its calls on the list."""

    label: str
    query: str
    total: UsageTotal


@admin.register(UsageRecord)
class UsageRecordAdmin(ReadOnlyAdmin):
    change_list_template = "admin/usage_record_list.html"
    list_display = ("status", "operation", "model", "user", "total_tokens", "cost", "created_at")
    list_filter = ("status", "operation", ("cost_usd", admin.EmptyFieldListFilter), "estimated")
    list_select_related = ("user",)
    date_hierarchy = "created_at"
    search_fields = (
        *("user__email", "model", "request_id", "=job_id", "=playbook_id", "=api_key_id"),
        *("=session_id", "=metadata__request_id"),
    )
    csv_columns = (
        *("created_at", "user__email", "playbook_id", "job_id", "session_id", "api_key_id"),
        *("operation", "step", "attempt", "status", "base_url", "model", "prompt_tokens"),
        *("completion_tokens", "cached_tokens", "total_tokens", "estimated", "cost_usd"),
        *("price_source", "request_id"),
    )

    @admin.display(ordering="cost_usd")
    def cost(self, record: UsageRecord) -> str:
        return "unknown" if record.cost_usd is None else f"${record.cost_usd:.4f}"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_safe(self.summary))
        return [path("summary/", view, name="billing_usagerecord_summary"), *super().get_urls()]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        return lookup == "user__email" or super().lookup_allowed(lookup, value, request)

    def summary(self, request: HttpRequest) -> HttpResponse:
        """Usage of the calls that the list's filters select, grouped by one field."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        filters = request.GET.copy()
        by = pop_choice(filters, "by", GROUP_FIELDS, "model")
        span = pop_choice(filters, "span", TIME_RANGES, "31")
        rows = self.filtered_rows(request, filters)
        if span != "all":
            rows = rows.filter(created_at__gte=timezone.now() - timedelta(days=int(span)))
        summary = list(summary_rows(rows, by, filters))
        context = self.admin_site.each_context(request) | {
            "title": "Usage summary",
            "opts": self.opts,
            "by": by,
            "span": span,
            "groups": GROUP_FIELDS,
            "spans": TIME_RANGES,
            "filters": filters,
            "back": f"{reverse('admin:billing_usagerecord_changelist')}?{filters.urlencode()}",
            "total": total_of(row.total for row in summary),
            "lines": summary[:MAX_SUMMARY_ROWS],
            "left_out": max(0, len(summary) - MAX_SUMMARY_ROWS),
        }
        return render(request, "admin/usage_summary.html", context)

    def filtered_rows(self, request: HttpRequest, filters: QueryDict) -> QuerySet[UsageRecord]:
        """The rows that the list shows with this query."""
        request.GET = filters  # type: ignore[assignment]  # the changelist reads only request.GET
        try:
            rows: QuerySet[UsageRecord]
            rows = self.get_changelist_instance(request).get_queryset(request)
        except IncorrectLookupParameters as error:
            raise BadRequest("Unknown filter.") from error
        return rows.order_by()


def pop_choice(query: QueryDict, name: str, known: dict[str, Any], usual: str) -> str:
    """Remove a parameter from `query`; returns its value, or `usual` if it is unknown."""
    value = str(query.get(name, ""))
    query.pop(name, None)
    return value if value in known else usual


def summary_rows(rows: QuerySet[UsageRecord], by: str, filters: QueryDict) -> Iterator[SummaryRow]:
    """Newest first where `by` is a time, else most tokens first."""
    field, lookup = GROUP_FIELDS[by]
    found = total_by(sum_by(rows, field, period=by), 0)
    order = found if field == START else sorted(found, key=lambda one: -found[one].total_tokens)
    for value in order:
        query = filters.copy()
        if lookup and value:
            query[lookup] = str(value)
        link = query.urlencode() if lookup and value else ""
        yield SummaryRow(str(value or "none"), link, found[value])
