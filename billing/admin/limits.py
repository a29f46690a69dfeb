"""The admin of cost caps, budgets and quota periods."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from billing.admin.base import AuditedAdmin, BillingOffNotice
from billing.limits.budgets import amounts_of
from billing.limits.quota import release_hold
from billing.models import Budget, CostCap, QuotaHold, QuotaPeriod
from core.admin import ReadOnlyAdmin, row_action
from core.clock import database_now


class SpendLimitAdmin(AuditedAdmin):
    """Limits of a user or a playbook."""

    list_select_related = ("user",)
    autocomplete_fields = ("user",)
    search_fields = ("user__email", "=playbook_id")
    date_hierarchy = "updated_at"

    def audit_detail(self, obj: CostCap | Budget) -> dict[str, Any]:
        return amounts_of(obj)


@admin.register(CostCap)
class CostCapAdmin(SpendLimitAdmin):
    """Cost limits of single users and playbooks instead of those of the settings; 0: none."""

    audit_noun = "cost_cap"
    list_display = ("__str__", "usd_per_day", "usd_per_month", "user", "playbook_id", "updated_at")
    csv_columns = ("updated_at", "user__email", "playbook_id", "usd_per_day", "usd_per_month")


@admin.register(Budget)
class BudgetAdmin(SpendLimitAdmin):
    """Budgets that users set themselves, and the last warnings sent."""

    audit_noun = "budget"
    list_display = (
        *("__str__", "user", "usd_per_day", "usd_per_month", "warn_percent", "stops"),
        *("warned_day", "warned_month", "updated_at"),
    )
    list_filter = ("stops",)
    readonly_fields = ("warned_day", "warned_month")
    csv_columns = (
        *("updated_at", "user__email", "playbook_id", "usd_per_day", "usd_per_month"),
        *("warn_percent", "stops", "warned_day", "warned_month"),
    )


class QuotaPeriodFilter(admin.SimpleListFilter):
    title = "period"
    parameter_name = "when"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("now", "current"), ("held", "with reservations")]

    def queryset(self, request: HttpRequest, rows: QuerySet[QuotaPeriod]) -> QuerySet[QuotaPeriod]:
        now = database_now()
        match self.value():
            case "now":
                return rows.filter(start__lte=now, end__gt=now)
            case "held":
                return rows.filter(evolutions_held__gt=0) | rows.filter(tokens_held__gt=0)
        return rows


@admin.register(QuotaPeriod)
class QuotaPeriodAdmin(BillingOffNotice, ReadOnlyAdmin):
    """Monthly usage of each user, and what is reserved for running jobs."""

    list_display = (
        *("user", "start", "end", "evolutions_used", "evolutions_held"),
        *("tokens_used", "tokens_held"),
    )
    list_filter = (QuotaPeriodFilter,)
    list_select_related = ("user",)
    date_hierarchy = "start"
    search_fields = ("user__email",)
    csv_columns = (
        *("user__email", "start", "end", "evolutions_used", "evolutions_held"),
        *("tokens_used", "tokens_held"),
    )
    actions = ("release_holds",)

    release_holds = row_action(
        "Release reservations",
        lambda row, by: release_hold(hold=row, by=by),
        one="reservation released",
        many="reservations released",
        rows=lambda rows: QuotaHold.objects.filter(period__in=rows).select_related("period"),
    )
