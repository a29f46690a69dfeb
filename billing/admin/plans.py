"""The admin of plans, billing accounts and Stripe's events."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.views.decorators.http import require_safe

from billing.admin.base import AuditedAdmin, PlanListAdmin
from billing.admin.limits import PlanLimitInline
from billing.limits.overage import set_overage
from billing.models import BillingAccount, Limit, Plan, StripeEvent, UsageRecord
from billing.plans.entitlements import grant_plan, make_default, withdraw_plan
from billing.stripe.sync import extend_trial, resync_account, unlink_customer
from billing.usage.margin import margins
from core.admin import ReadOnlyAdmin, changelist_url, may, request_principal, row_action
from core.clock import database_now

MAX_ROWS = 500


@admin.register(Plan)
class PlanAdmin(PlanListAdmin, AuditedAdmin):
    """What a plan includes; a change applies at once to everybody on it."""

    audit_noun = "plan"

    list_display = (
        *("name", "price", "limits_of", "retention_days", "trial_days", "is_active"),
        "is_default",
    )
    inlines = (PlanLimitInline,)
    list_filter = ("is_active",)
    search_fields = ("name", "slug", "price_lookup_key")
    # Changed only by the action, so that there is always exactly one default plan.
    readonly_fields = ("is_default",)
    actions = ("set_as_default",)
    date_hierarchy = "updated_at"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Plan]:
        return super().get_queryset(request).prefetch_related("limits")

    @admin.display(description="limits")
    def limits_of(self, plan: Plan) -> str:
        return ", ".join(map(str, plan.limits.all()))

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        is_default = isinstance(obj, Plan) and obj.is_default
        return not is_default and super().has_delete_permission(request, obj)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """The log's entry names the limits, which are saved after the plan."""
        super().save_related(request, form, formsets, change)
        limits = ", ".join(map(str, Limit.objects.filter(plan=form.instance)))
        self._audit(request, form.instance, "set", {"slug": form.instance.slug, "limits": limits})

    def save_model(self, request: HttpRequest, obj: Plan, form: Any, change: bool) -> None:
        obj.save()

    def audit_removal_detail(self, obj: Plan) -> dict[str, Any]:
        return {"slug": obj.slug}

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Plan]) -> None:
        super().delete_queryset(request, queryset.filter(is_default=False))

    set_as_default = row_action(
        "Make default plan",
        lambda row, by: make_default(plan=row, by=by),
        one="default plan set",
        many="default plans set",
    )


@admin.register(BillingAccount)
class BillingAccountAdmin(PlanListAdmin, ReadOnlyAdmin):
    """The plan of each user as Stripe has it; staff can grant one without payment."""

    list_display = (
        *("user", "plan", "status", "payment_problem", "period_end", "cancel_at_period_end"),
        *("complimentary_plan", "complimentary_until", "overage", "synced_at", "at_stripe"),
    )
    change_list_template = "admin/billing_account_list.html"
    list_filter = (
        "status",
        ("duplicate_subscription_id", admin.EmptyFieldListFilter),
        "plan",
        "cancel_at_period_end",
        ("overage_subscription_id", admin.EmptyFieldListFilter),
    )
    list_select_related = ("user", "plan", "complimentary_plan")
    date_hierarchy = "updated_at"
    search_fields = ("user__email", "=stripe_customer_id", "=stripe_subscription_id")
    autocomplete_fields = ("user",)
    actions = (
        *("withdraw", "resync_from_stripe", "extend_trials", "unlink_customers"),
        "end_overages",
    )
    csv_columns = (
        *("user__email", "plan__slug", "status", "period_start", "period_end"),
        *("cancel_at_period_end", "grace_until", "trial_end", "synced_at"),
        *("stripe_customer_id", "stripe_subscription_id", "duplicate_subscription_id"),
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("billing.add_billingaccount")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return request.user.has_perm("billing.change_billingaccount")

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        given = ("complimentary_plan", "complimentary_until")
        return super().get_fields(request, obj) if obj else ("user", *given)

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Only what staff gives can be chosen: the rest comes from Stripe."""
        names = [field.name for field in self.opts.fields if field.editable]
        given = {"complimentary_plan", "complimentary_until"}
        return [name for name in names if name not in given] if obj else ()

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        if plan := form.base_fields.get("complimentary_plan"):
            plan.required = True
        return form

    def save_model(
        self, request: HttpRequest, obj: BillingAccount, form: Any, change: bool
    ) -> None:
        if obj.complimentary_plan is None:
            return
        given = grant_plan(
            user=obj.user,
            plan=obj.complimentary_plan,
            until=obj.complimentary_until,
            by=request_principal(request),
        )
        obj.pk, obj.status = given.pk, given.status

    @admin.display
    def payment_problem(self, account: BillingAccount) -> str:
        if account.status != BillingAccount.Status.PAST_DUE:
            return ""
        until = account.grace_until
        return f"unpaid; plan kept until {until:%-d %b %Y}" if until else "unpaid"

    @admin.display
    def overage(self, account: BillingAccount) -> str:
        return account.overage_price if account.overage_subscription_id else ""

    @admin.display(description="in Stripe")
    def at_stripe(self, account: BillingAccount) -> str:
        """Links to Stripe's page of the customer, and to our list of its events."""
        customer = account.stripe_customer_id
        if not customer:
            return ""
        mode = "" if settings.STRIPE_LIVE_MODE else "test/"
        events = changelist_url("billing_stripeevent", customer_id=customer)
        return format_html(
            '<a href="https://dashboard.stripe.com/{}customers/{}">customer</a>, '
            '<a href="{}">events</a>',
            *(mode, customer, events),
        )

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_safe(self.margin))
        return [path("margin/", view, name="billing_billingaccount_margin"), *super().get_urls()]

    def margin(self, request: HttpRequest) -> HttpResponse:
        """Revenue beside the cost of model calls, by account."""
        if not (self.has_view_permission(request) and may(request, "view", UsageRecord)):
            raise PermissionDenied
        rows = margins(now=database_now())
        context = self.admin_site.each_context(request) | {
            "title": "Margin of the last 30 days",
            "opts": self.opts,
            "rows": rows[:MAX_ROWS],
            "left_out": max(0, len(rows) - MAX_ROWS),
            "revenue": sum(row.revenue for row in rows if row.margin is not None),
            "cost": sum(row.cost_usd for row in rows),
        }
        return render(request, "admin/margin.html", context)

    withdraw = row_action(
        "Withdraw complimentary plan",
        lambda row, by: withdraw_plan(account=row, by=by),
        one="plan withdrawn",
        many="plans withdrawn",
    )

    resync_from_stripe = row_action(
        "Sync with Stripe",
        lambda row, by: resync_account(account=row, by=by),
        one="account synced",
        many="accounts synced",
    )

    extend_trials = row_action(
        "Extend trial by 7 days",
        lambda row, by: extend_trial(account=row, days=7, by=by),
        one="trial extended",
        many="trials extended",
    )

    unlink_customers = row_action(
        "Unlink a customer that Stripe does not know",
        lambda row, by: unlink_customer(account=row, by=by),
        one="customer unlinked",
        many="customers unlinked",
    )

    end_overages = row_action(
        "End overage",
        lambda row, by: set_overage(account=row, on=False, by=by),
        one="overage ended",
        many="overages ended",
        rows=lambda rows: rows.exclude(overage_subscription_id=""),
    )


@admin.register(StripeEvent)
class StripeEventAdmin(ReadOnlyAdmin):
    """Webhook events and what became of them, failed and rejected ones too."""

    list_display = ("event_id", "type", "result", "attempts", "customer_id", "detail", "updated_at")
    list_filter = ("result", "type")
    date_hierarchy = "updated_at"
    search_fields = ("event_id", "=customer_id", "type")
