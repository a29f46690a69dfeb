"""The admin of users, with what each has and spends in the apps above accounts."""

from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import Count, DecimalField, F, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from accounts.admin.users import AccountUserAdmin, per_user_subquery
from accounts.models import User
from billing.models import UsageRecord
from config.web.view_as import start_viewing
from core.admin import request_principal
from core.errors import AceError
from playbooks.models import Playbook

SPEND_DAYS = 30
MONEY = DecimalField(max_digits=14, decimal_places=6)


class UserAdmin(AccountUserAdmin):
    row_page = "admin:customer"
    list_display = ("state", "email", "playbooks", "keys", "spend", "last_login", "created_at")
    readonly_fields: ClassVar = (*AccountUserAdmin.readonly_fields, "plan", "customer_page")
    fieldsets: ClassVar = (
        *AccountUserAdmin.fieldsets,
        ("Elsewhere", {"fields": ("plan", "customer_page")}),
    )
    actions = (*AccountUserAdmin.actions, "view_as")
    csv_columns = (
        *("id", "email", "is_active", "is_staff", "second_factor_required", "playbook_count"),
        *("key_count", "spent", "unpriced", "last_login", "created_at"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        recent = UsageRecord.objects.filter(
            created_at__gte=timezone.now() - timedelta(days=SPEND_DAYS)
        )
        unpriced = recent.filter(cost_usd=None).exclude(status="started")
        rows = super().get_queryset(request)
        return rows.annotate(
            playbook_count=per_user_subquery(Playbook.objects.all(), Count("pk"), owner="owner"),
            spent=per_user_subquery(recent, Sum("cost_usd"), field=MONEY),
            unpriced=per_user_subquery(unpriced, Count("pk")),
            plan_name=F("billing_account__plan__name"),
            plan_status=F("billing_account__status"),
        )

    @admin.action(description="View as this user (read-only)", permissions=["change"])
    def view_as(self, request: HttpRequest, rows: QuerySet[User]) -> HttpResponse | None:
        """Show their pages in this browser; staff cannot be viewed."""
        try:
            start_viewing(request=request, user=rows.get(), by=request_principal(request))
        except User.MultipleObjectsReturned:
            messages.warning(request, "Choose one user.")
        except AceError as error:
            messages.warning(request, error.message)
        else:
            return redirect("playbooks:list")
        return None

    def get_list_display(self, request: HttpRequest) -> Any:
        return (*self.list_display, *(("plan",) if settings.BILLING_ENABLED else ()))

    @admin.display(ordering="playbook_count")
    def playbooks(self, user: Any) -> int:
        return int(user.playbook_count)

    @admin.display(description=f"spent in {SPEND_DAYS} days", ordering="spent")
    def spend(self, user: Any) -> str:
        unknown = f" + {user.unpriced} with an unknown price" if user.unpriced else ""
        return f"${user.spent:.2f}{unknown}"

    @admin.display(ordering="plan_status")
    def plan(self, user: Any) -> str:
        if not settings.BILLING_ENABLED:
            return "Billing is not enabled."
        words = [user.plan_name, (user.plan_status or "free").replace("_", " ")]
        return ", ".join(filter(None, words))

    @admin.display(description="customer page")
    def customer_page(self, user: User) -> str:
        return format_html('<a href="{}">{}</a>', reverse("admin:customer", args=[user.pk]), user)
