"""Staff sets what plans include, and sees who is on which and how much of it they have used."""

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from accounts.admin import CsvExport, MachineRows, principal_of, row_action
from accounts.audit import record
from accounts.clock import database_now
from billing.beginning import retention_begins
from billing.granting import grant_plan, make_default, withdraw_plan
from billing.models import BillingAccount, Plan, QuotaHold, QuotaNotice, QuotaPeriod
from billing.plan_rows import NOTICE
from billing.quota import release_hold
from billing.syncing import resync_account

LIMITS = ("monthly_evolutions", "monthly_tokens", "max_playbooks", "max_keys", "retention_days")
OFF = "Billing is not enabled on this server: no limit of a plan applies to anybody."


class SaysWhenOff(CsvExport):
    """Lists that say so while billing is off."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        if not settings.BILLING_ENABLED:
            messages.info(request, OFF)
        return super().changelist_view(request, extra_context)


@admin.register(Plan)
class PlanAdmin(SaysWhenOff):
    """What a plan includes; a change applies to everybody on it from the next moment on."""

    list_display = ("name", "price_text", *LIMITS, "trial_days", "is_active", "is_default")
    list_filter = ("is_active",)
    search_fields = ("name", "slug", "price_lookup_key")
    # By the action only: between taking it from one plan and giving it to another nobody has any.
    readonly_fields = ("is_default",)
    actions = ("make_everybodys",)
    date_hierarchy = "updated_at"
    csv_columns = ("slug", "name", "price_lookup_key", *LIMITS, "is_active", "is_default")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Says until when a plan's days of retention do not count yet."""
        begins = retention_begins(database_now())
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
        if change and obj.shorten(was=form.initial.get("retention_days"), now=now):
            messages.warning(
                request,
                f"The fewer days count from {now + NOTICE:%-d %B %Y} on. Whom that concerns is "
                "told by a letter.",
            )
        super().save_model(request, obj, form, change)
        limits = {name: getattr(obj, name) for name in LIMITS}
        who = principal_of(request)
        record(action="set_plan", by=who, subject=obj, slug=obj.slug, **limits)

    def delete_model(self, request: HttpRequest, obj: Plan) -> None:
        record(action="remove_plan", by=principal_of(request), subject=obj, slug=obj.slug)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Plan]) -> None:
        for plan in queryset.filter(is_default=False):
            self.delete_model(request, plan)

    make_everybodys = row_action(
        "Make it the plan of all who have no other",
        lambda row, by: make_default(plan=row, by=by),
        one="plan is everybody's",
        many="plans, one after the other",
    )


class TroubleFilter(admin.SimpleListFilter):
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
                return rows.exclude(second_subscription_id="")
        return rows


@admin.register(BillingAccount)
class BillingAccountAdmin(SaysWhenOff, MachineRows):
    """Who is on which plan, as the payment provider says; staff can add one without payment."""

    list_display = (
        *("user", "plan", "status", "standing", "period_end", "cancel_at_period_end"),
        "synced_at",
    )
    list_filter = (TroubleFilter, "status", "plan", "cancel_at_period_end")
    list_select_related = ("user", "plan")
    date_hierarchy = "updated_at"
    search_fields = ("user__email", "=stripe_customer_id", "=stripe_subscription_id")
    autocomplete_fields = ("user",)
    actions = ("withdraw", "read_again")
    csv_columns = (
        *("user__email", "plan__slug", "status", "period_start", "period_end"),
        *("cancel_at_period_end", "grace_until", "trial_end", "synced_at"),
        *("stripe_customer_id", "stripe_subscription_id", "second_subscription_id"),
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
        granted = grant_plan(user=obj.user, plan=plan, by=principal_of(request))
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

    read_again = row_action(
        "Read again from Stripe",
        lambda row, by: resync_account(account=row, by=by),
        one="account is as Stripe says",
        many="accounts are as Stripe says",
        rows=lambda rows: rows.select_related("user"),
    )


class CurrentFilter(admin.SimpleListFilter):
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
class QuotaPeriodAdmin(SaysWhenOff, MachineRows):
    list_display = (
        *("user", "start", "end", "evolutions_used", "evolutions_held"),
        *("tokens_used", "tokens_held"),
    )
    list_filter = (CurrentFilter,)
    list_select_related = ("user",)
    date_hierarchy = "start"
    search_fields = ("user__email",)
    csv_columns = (
        *("user__email", "start", "end", "evolutions_used", "evolutions_held"),
        *("tokens_used", "tokens_held"),
    )


@admin.register(QuotaHold)
class QuotaHoldAdmin(SaysWhenOff, MachineRows):
    """What is kept for work under way; one that is overdue belongs to a dead process."""

    list_display = ("resource", "amount", "user", "holder_id", "created_at", "overdue")
    list_filter = ("resource",)
    list_select_related = ("period__user",)
    date_hierarchy = "created_at"
    search_fields = ("period__user__email", "=holder_id")
    actions = ("give_back",)
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

    give_back = row_action(
        "Give back what is held",
        lambda row, by: release_hold(hold=row, by=by),
        one="hold given back",
        many="holds given back",
        rows=lambda rows: rows.select_related("period"),
    )


@admin.register(QuotaNotice)
class QuotaNoticeAdmin(SaysWhenOff, MachineRows):
    list_display = ("__str__", "user", "created_at", "sent_at")
    list_filter = ("resource", "percent")
    list_select_related = ("period__user",)
    date_hierarchy = "created_at"
    search_fields = ("period__user__email",)
    csv_columns = ("period__user__email", "resource", "percent", "limit", "created_at", "sent_at")

    @admin.display(ordering="period__user__email")
    def user(self, notice: QuotaNotice) -> str:
        return str(notice.period.user)
