"""Staff's view of people: who they are, what they have and spend, and who may come in."""

import json
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminUserCreationForm
from django.contrib.auth.models import Group
from django.db.models import (
    Count,
    DecimalField,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
)
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.html import format_html_join

from accounts.models import User
from accounts.services import user_administration
from core.admin import CsvExportAdmin, apply_action, changelist_url, request_principal, row_action
from core.audit import record

admin.site.unregister(Group)
SPEND_DAYS = 30
MONEY = DecimalField(max_digits=14, decimal_places=6)
RELATED_LISTS = (
    ("playbooks", "playbooks_playbook"),
    ("API keys", "accounts_apikey"),
    ("evolutions", "evolution_evolutionjob"),
    ("outcomes", "evolution_outcome"),
    ("usage", "billing_usagerecord"),
    ("plan and payment", "billing_billingaccount"),
    ("audit log", "core_auditentry"),
)


class NewUserForm(AdminUserCreationForm):  # type: ignore[type-arg]  # generic in its stubs only
    class Meta:
        model = User
        fields = ("email",)

    def clean_email(self) -> str:
        return str(self.cleaned_data["email"]).lower()


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("active", "active"), ("disabled", "disabled"), ("staff", "staff")]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        chosen = {
            "active": Q(is_active=True),
            "disabled": Q(is_active=False),
            "staff": Q(is_staff=True),
        }
        return rows.filter(chosen.get(self.value() or "", Q()))


@admin.register(User)
class AccountUserAdmin(CsvExportAdmin, UserAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    add_form = NewUserForm
    list_display = ("state", "email", "playbooks", "keys", "spend", "last_login", "joined")
    list_display_links = ("email",)
    list_filter = (StateFilter, "second_factor_required")
    list_per_page = 50
    show_full_result_count = False
    date_hierarchy = "created_at"
    search_fields = ("email", "=id")
    ordering = ("-created_at",)
    filter_horizontal = ("user_permissions",)
    readonly_fields = (
        *("is_active", "second_factor_required", "last_login", "created_at", "plan", "see"),
    )
    fieldsets = (
        (None, {"fields": ("email", "password", "email_verified", "is_active", "plan", "see")}),
        (
            "Staff",
            {"fields": ("second_factor_required", "is_staff", "is_superuser", "user_permissions")},
        ),
        ("Times", {"fields": ("last_login", "created_at")}),
    )
    add_fieldsets = ((None, {"fields": ("email", "usable_password", "password1", "password2")}),)
    actions = (
        "disable",
        "enable",
        "require_second_factor",
        "stop_requiring_second_factor",
        "erase",
    )
    csv_columns = (
        *("id", "email", "is_active", "is_staff", "second_factor_required", "playbook_count"),
        *("key_count", "spent", "unpriced", "last_login", "created_at"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        recent = Q(created_at__gte=timezone.now() - timedelta(days=SPEND_DAYS))
        return User.objects.order_by(*self.ordering).annotate(
            playbook_count=per_user_subquery("playbooks", Count("pk")),
            key_count=per_user_subquery("api_keys", Count("pk"), Q(revoked_at=None)),
            spent=per_user_subquery("usage_records", Sum("cost_usd"), recent),
            plan_name=F("billing_account__plan__name"),
            plan_status=F("billing_account__status"),
            unpriced=per_user_subquery(
                "usage_records", Count("pk"), recent & Q(cost_usd=None) & ~Q(status="started")
            ),
        )

    def get_list_display(self, request: HttpRequest) -> Any:
        return (*self.list_display, *(("plan",) if settings.BILLING_ENABLED else ()))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Only a superuser makes staff; anybody else could make a superuser of themselves."""
        powers = ("is_staff", "is_superuser", "user_permissions")
        return (*self.readonly_fields, *(() if is_superuser(request) else powers))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Whoever sets another's password or address can be that person, with all that they may do.
        others = (
            obj is not None and (obj.is_staff or obj.is_superuser) and obj.pk != request.user.pk
        )
        beyond = others and not is_superuser(request)
        return not beyond and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        record(action="add_user", by=request_principal(request), subject=obj, owner=obj)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        fields = changed_fields(message)
        who = request_principal(request)
        record(action="update_user", by=who, subject=obj, owner=obj, fields=fields)
        return super().log_change(request, obj, message)

    @admin.display(ordering="is_active")
    def state(self, user: User) -> str:
        words = ["active" if user.is_active else "disabled"]
        words += ["superuser" if user.is_superuser else "staff"] * user.is_staff
        words += ["second factor asked"] * user.second_factor_required
        return ", ".join(words)

    @admin.display(ordering="playbook_count")
    def playbooks(self, user: Any) -> int:
        return int(user.playbook_count)

    @admin.display(description="usable keys", ordering="key_count")
    def keys(self, user: Any) -> int:
        return int(user.key_count)

    @admin.display(description=f"spent in {SPEND_DAYS} days", ordering="spent")
    def spend(self, user: Any) -> str:
        unknown = f" + {user.unpriced} of unknown price" if user.unpriced else ""
        return f"${user.spent:.2f}{unknown}"

    @admin.display(ordering="plan_status")
    def plan(self, user: Any) -> str:
        if not settings.BILLING_ENABLED:
            return "Billing is not enabled."
        words = [user.plan_name, (user.plan_status or "free").replace("_", " ")]
        return ", ".join(filter(None, words))

    @admin.display(ordering="created_at")
    def joined(self, user: User) -> Any:
        return user.created_at

    @admin.display(description="their rows")
    def see(self, user: User) -> str:
        found = ((changelist_url(model, q=user.email), text) for text, model in RELATED_LISTS)
        return format_html_join(" · ", '<a href="{}">{}</a>', found)

    disable = row_action(
        "Disable: refuse their logins, keys and tokens at once",
        lambda user, by: user_administration.disable_user(user=user, by=by),
        one="person disabled",
        many="people disabled",
        rows=lambda rows: rows.filter(is_active=True),
    )

    enable = row_action(
        "Enable again",
        lambda user, by: user_administration.enable_user(user=user, by=by),
        one="person enabled",
        many="people enabled",
        rows=lambda rows: rows.filter(is_active=False),
    )

    @admin.action(description="Delete for good, at their wish…", permissions=["change"])
    def erase(self, request: HttpRequest, rows: QuerySet[User]) -> HttpResponse | None:
        if "apply" not in request.POST:
            context = self.admin_site.each_context(request) | {
                "title": "Delete accounts for good",
                "opts": self.opts,
                "rows": rows,
                "action": "erase",
                "verb": "Delete for good",
                "consequence": "Playbooks, outcomes, keys, usage: everything of theirs is gone. "
                "Nothing brings it back. To shut somebody out, disable them instead.",
            }
            return render(request, "admin/confirm_action.html", context)
        who = request_principal(request)
        apply_action(
            request,
            rows,
            lambda user: user_administration.delete_user(user=user, by=who),
            one="account deleted",
            many="accounts deleted",
        )
        return None

    @admin.action(description="Require a second factor", permissions=["change"])
    def require_second_factor(self, request: HttpRequest, rows: QuerySet[User]) -> None:
        self._require(request, rows, required=True)

    @admin.action(description="Stop requiring a second factor", permissions=["change"])
    def stop_requiring_second_factor(self, request: HttpRequest, rows: QuerySet[User]) -> None:
        self._require(request, rows, required=False)

    def _require(self, request: HttpRequest, rows: QuerySet[User], *, required: bool) -> None:
        who = request_principal(request)
        done = "asked for a second factor" if required else "no longer asked for a second factor"
        apply_action(
            request,
            rows.filter(second_factor_required=not required),
            lambda user: user_administration.require_second_factor(
                user=user, by=who, required=required
            ),
            one=f"person {done}",
            many=f"people {done}",
        )


def per_user_subquery(relation: str, figure: Any, condition: Q | None = None) -> Coalesce:
    """A figure of a user's rows, whose model may live above this app; a subquery for each row."""
    field: Any = User._meta.get_field(relation)
    owner = field.field.name
    rows = field.related_model.objects.filter(condition or Q(), **{owner: OuterRef("pk")})
    figures = rows.order_by().values(owner).annotate(figure=figure).values("figure")
    kind = MONEY if isinstance(figure, Sum) else IntegerField()
    return Coalesce(Subquery(figures, output_field=kind), Value(0, output_field=kind))


def is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def changed_fields(message: Any) -> str:
    """The names of the fields in Django's description of a change; never their values."""
    parts = json.loads(message) if isinstance(message, str) and message else message
    found = [part.get("changed", {}).get("fields", []) for part in parts or []]
    return ", ".join(str(name) for names in found for name in names)
