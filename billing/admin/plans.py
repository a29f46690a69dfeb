"""Staff sets what plans include, and sees who is on which and how much of it they have used."""

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from billing.models import (
    RETENTION_NOTICE_PERIOD,
    BillingAccount,
    Plan,
)
from billing.plans.complimentary_plans import grant_plan, make_default, withdraw_plan
from billing.plans.retention_notices import retention_starts_at
from billing.stripe.sync import resync_account
from core.admin import CsvExportAdmin, ReadOnlyAdmin, request_principal, row_action
from core.audit import record
from core.clock import database_now

LIMIT_FIELDS = (
    "monthly_evolutions",
    "monthly_tokens",
    "max_playbooks",
    "max_keys",
    "retention_days",
)
BILLING_OFF_MESSAGE = (
    "Billing is not enabled on this server: no limit of a plan applies to anybody."
)


class BillingOffNotice(CsvExportAdmin):
    """Lists that say so while billing is off."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        if not settings.BILLING_ENABLED:
            messages.info(request, BILLING_OFF_MESSAGE)
        return super().changelist_view(request, extra_context)


@admin.register(Plan)
class PlanAdmin(BillingOffNotice):
    """What a plan includes; a change applies to everybody on it from the next moment on."""

    list_display = ("name", "display_price", *LIMIT_FIELDS, "trial_days", "is_active", "is_default")
    list_filter = ("is_active",)
    search_fields = ("name", "slug", "price_lookup_key")
    # By the action only: between taking it from one plan and giving it to another nobody has any.
    readonly_fields = ("is_default",)
    actions = ("set_as_default",)
    date_hierarchy = "updated_at"
    csv_columns = ("slug", "name", "price_lookup_key", *LIMIT_FIELDS, "is_active", "is_default")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Says until when a plan's days of retention do not count yet."""
        begins = retention_starts_at(database_now())
        if begins is not None:
            messages.warning(
                request,
                f"Plans are new here: no plan's days blank traces before {begins:%-d %B %Y}. "
                "Whom that concerns is told by a letter.",
            )
        return super().changelist_view(request, extra_context)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        is_default = isinstance(obj, Plan) and obj.is_default
        return not is_default and super().has_delete_permission(request, obj)

    def save_model(self, request: HttpRequest, obj: Plan, form: Any, change: bool) -> None:
        now = database_now()
        if change and obj.shorten_retention(was=form.initial.get("retention_days"), now=now):
            messages.warning(
                request,
                f"The fewer days count from {now + RETENTION_NOTICE_PERIOD:%-d %B %Y} on. Whom that concerns is "
                "told by a letter.",
            )
        super().save_model(request, obj, form, change)
        limits = {name: getattr(obj, name) for name in LIMIT_FIELDS}
        who = request_principal(request)
        record(action="set_plan", by=who, subject=obj, slug=obj.slug, **limits)

    def delete_model(self, request: HttpRequest, obj: Plan) -> None:
        record(action="remove_plan", by=request_principal(request), subject=obj, slug=obj.slug)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Plan]) -> None:
        for plan in queryset.filter(is_default=False):
            self.delete_model(request, plan)

    set_as_default = row_action(
        "Make it the plan of all who have no other",
        lambda row, by: make_default(plan=row, by=by),
        one="plan is everybody's",
        many="plans, one after the other",
    )


class PaymentProblemFilter(admin.SimpleListFilter):
    title = "what is wrong"
    parameter_name = "trouble"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("grace", "past due, in grace"),
            ("over", "past due, grace is over"),
            ("two", "pays two subscriptions"),
        ]

    def queryset(
        self, request: HttpRequest, rows: QuerySet[BillingAccount]
    ) -> QuerySet[BillingAccount]:
        entitled = BillingAccount.objects.entitled(database_now()).values("pk")
        match self.value():
            case "grace":
                return rows.filter(status="past_due", pk__in=entitled)
            case "over":
                return rows.filter(status="past_due").exclude(pk__in=entitled)
            case "two":
                return rows.exclude(duplicate_subscription_id="")
        return rows


@admin.register(BillingAccount)
class BillingAccountAdmin(BillingOffNotice, ReadOnlyAdmin):
    """Who is on which plan, as the payment provider says; staff can add one without payment."""

    list_display = (
        *("user", "plan", "status", "standing", "period_end", "cancel_at_period_end"),
        "synced_at",
    )
    list_filter = (PaymentProblemFilter, "status", "plan", "cancel_at_period_end")
    list_select_related = ("user", "plan")
    date_hierarchy = "updated_at"
    search_fields = ("user__email", "=stripe_customer_id", "=stripe_subscription_id")
    autocomplete_fields = ("user",)
    actions = ("withdraw", "resync_from_stripe")
    csv_columns = (
        *("user__email", "plan__slug", "status", "period_start", "period_end"),
        *("cancel_at_period_end", "grace_until", "trial_end", "synced_at"),
        *("stripe_customer_id", "stripe_subscription_id", "duplicate_subscription_id"),
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("billing.add_billingaccount")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        is_paid = isinstance(obj, BillingAccount) and obj.stripe_subscription_id
        return not is_paid and request.user.has_perm("billing.change_billingaccount")

    def get_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return super().get_fields(request, obj) if obj else ("user", "plan")

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> Any:
        """Only the plan can be chosen: the rest is the payment provider's."""
        names = [field.name for field in self.opts.fields if field.editable]
        return [name for name in names if name != "plan"] if obj else ()

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        form = super().get_form(request, obj, change, **kwargs)
        if plan := form.base_fields.get("plan"):
            plan.required = True
            plan.help_text = "Given without payment, until it is withdrawn."
        return form

    def save_model(
        self, request: HttpRequest, obj: BillingAccount, form: Any, change: bool
    ) -> None:
        plan = obj.plan
        if plan is None:
            return
        granted = grant_plan(user=obj.user, plan=plan, by=request_principal(request))
        obj.pk, obj.status = granted.pk, granted.status

    @admin.display(description="what is wrong")
    def standing(self, account: BillingAccount) -> str:
        if account.status != BillingAccount.Status.PAST_DUE:
            return ""
        until = account.grace_until
        return f"not paid; the plan is kept until {until:%-d %b %Y}" if until else "not paid"

    withdraw = row_action(
        "Withdraw a plan given without payment",
        lambda row, by: withdraw_plan(account=row, by=by),
        one="plan withdrawn",
        many="plans withdrawn",
        rows=lambda rows: rows.select_related("user"),
    )

    resync_from_stripe = row_action(
        "Read again from Stripe",
        lambda row, by: resync_account(account=row, by=by),
        one="account is as Stripe says",
        many="accounts are as Stripe says",
        rows=lambda rows: rows.select_related("user"),
    )
