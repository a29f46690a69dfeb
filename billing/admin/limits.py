"""Staff sets what a user or a playbook may cost, and sees what people want to spend."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from billing.admin.plans import BillingOffNotice
from billing.limits.quota import release_hold
from billing.models import Budget, CostCap, QuotaHold, QuotaNotice, QuotaPeriod
from core.admin import CsvExportAdmin, ReadOnlyAdmin, request_principal, row_action
from core.audit import record
from core.clock import database_now


class SpendLimitAdmin(CsvExportAdmin):
    """Rows of a person or a playbook; each change is in the audit log under `what`."""

    what = ""
    list_select_related = ("user",)
    autocomplete_fields = ("user",)
    search_fields = ("user__email", "=playbook_id")
    date_hierarchy = "updated_at"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        self.note(request, obj, f"set_{self.what}", **limit_amounts(obj))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.note(request, obj, f"remove_{self.what}")
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            self.delete_model(request, row)

    def note(self, request: HttpRequest, obj: Any, action: str, **detail: str | None) -> None:
        who = request_principal(request)
        record(action=action, by=who, subject=obj, owner=obj.user_id, **detail)


def limit_amounts(row: CostCap | Budget) -> dict[str, str | None]:
    amounts = {"day": row.usd_per_day, "month": row.usd_per_month}
    return {span: None if usd is None else str(usd) for span, usd in amounts.items()}


@admin.register(CostCap)
class CostCapAdmin(SpendLimitAdmin):
    """A limit of its own for a user or a playbook, in the place of the settings'; 0: none."""

    what = "cost_cap"
    list_display = ("__str__", "usd_per_day", "usd_per_month", "user", "playbook_id", "updated_at")
    csv_columns = ("updated_at", "user__email", "playbook_id", "usd_per_day", "usd_per_month")


@admin.register(Budget)
class BudgetAdmin(SpendLimitAdmin):
    """What people want to spend themselves, and what they were told about it."""

    what = "budget"
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
    title = "when"
    parameter_name = "when"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("now", "this period"), ("held", "with something held")]

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


@admin.register(QuotaHold)
class QuotaHoldAdmin(BillingOffNotice, ReadOnlyAdmin):
    """What is kept for work under way; one that is overdue belongs to a dead process."""

    list_display = ("resource", "amount", "user", "holder_id", "created_at", "overdue")
    list_filter = ("resource",)
    list_select_related = ("period__user",)
    date_hierarchy = "created_at"
    search_fields = ("period__user__email", "=holder_id")
    actions = ("release_holds",)
    csv_columns = (
        *("period__user__email", "resource", "amount", "holder_id"),
        *("created_at", "expires_at"),
    )

    @admin.display(ordering="period__user__email")
    def user(self, hold: QuotaHold) -> str:
        return str(hold.period.user)

    @admin.display(boolean=True, ordering="expires_at")
    def overdue(self, hold: QuotaHold) -> bool:
        return hold.expires_at < timezone.now()

    release_holds = row_action(
        "Give back what is held",
        lambda row, by: release_hold(hold=row, by=by),
        one="hold given back",
        many="holds given back",
        rows=lambda rows: rows.select_related("period"),
    )


@admin.register(QuotaNotice)
class QuotaNoticeAdmin(BillingOffNotice, ReadOnlyAdmin):
    list_display = ("__str__", "user", "created_at", "sent_at")
    list_filter = ("resource", "percent")
    list_select_related = ("period__user",)
    date_hierarchy = "created_at"
    search_fields = ("period__user__email",)
    csv_columns = ("period__user__email", "resource", "percent", "limit", "created_at", "sent_at")

    @admin.display(ordering="period__user__email")
    def user(self, notice: QuotaNotice) -> str:
        return str(notice.period.user)
