"""The admin of users; config.admin_site.users registers it with columns of the apps above."""

import json
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminUserCreationForm
from django.contrib.auth.models import Group
from django.db.models import Count, Field, IntegerField, OuterRef, Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.models import ApiKey, User
from accounts.services import user_administration
from core.admin import CsvExportAdmin, apply_action, request_principal, row_action
from core.audit import record

admin.site.unregister(Group)


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


class AccountUserAdmin(CsvExportAdmin, UserAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    add_form = NewUserForm
    list_display: tuple[str, ...] = ("state", "email", "keys", "last_login", "joined")
    list_display_links = ("email",)
    list_filter = (StateFilter, "second_factor_required")
    list_per_page = 50
    show_full_result_count = False
    date_hierarchy = "created_at"
    search_fields = ("email", "=id")
    ordering = ("-created_at",)
    filter_horizontal = ("user_permissions",)
    readonly_fields: ClassVar[tuple[str, ...]] = (
        *("is_active", "second_factor_required", "last_login", "created_at"),
    )
    fieldsets: ClassVar[tuple[Any, ...]] = (
        (None, {"fields": ("email", "password", "email_verified", "is_active")}),
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

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        usable = ApiKey.objects.filter(revoked_at=None)
        rows = User.objects.order_by(*self.ordering)
        return rows.annotate(key_count=per_user_subquery(usable, Count("pk")))

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

    @admin.display(description="usable keys", ordering="key_count")
    def keys(self, user: Any) -> int:
        return int(user.key_count)

    @admin.display(ordering="created_at")
    def joined(self, user: User) -> Any:
        return user.created_at

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


def per_user_subquery(
    rows: QuerySet[Any], figure: Any, *, owner: str = "user", field: "Field[Any, Any] | None" = None
) -> Coalesce:
    """A figure of the rows of each user, 0 without any; a subquery for each row of the list."""
    own = rows.filter(**{owner: OuterRef("pk")}).order_by().values(owner)
    figures, field = own.annotate(figure=figure).values("figure"), field or IntegerField()
    return Coalesce(Subquery(figures, output_field=field), Value(0, output_field=field))


def is_superuser(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def changed_fields(message: Any) -> str:
    """The names of the fields in Django's description of a change; never their values."""
    parts = json.loads(message) if isinstance(message, str) and message else message
    found = [part.get("changed", {}).get("fields", []) for part in parts or []]
    return ", ".join(str(name) for names in found for name in names)
