"""The admin of users; config.admin_site.users registers it with columns of the apps above."""

import json
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminUserCreationForm
from django.contrib.auth.models import Group
from django.db.models import Count, Field, IntegerField, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from accounts.admin.api_keys import ReasonForm
from accounts.models import ApiKey, User
from accounts.services import user_administration
from core.admin import CsvExportAdmin, apply_action, confirm_page, request_principal, row_action
from core.audit import record

admin.site.unregister(Group)


class NewUserForm(AdminUserCreationForm):  # type: ignore[type-arg]  # generic in its stubs only
    class Meta:
        model = User
        fields = ("email",)

    def clean_email(self) -> str:
        return str(self.cleaned_data["email"]).lower()


class EraseForm(forms.Form):
    """Typed confirmation: the e-mail address of the one account, or how many accounts."""

    confirmation = forms.CharField(max_length=254)

    def __init__(self, *args: Any, users: list[User], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.users = users
        self.wanted = str(users[0]) if len(users) == 1 else f"{len(users)} accounts"
        self.fields["confirmation"].help_text = f"Type “{self.wanted}”."

    def clean_confirmation(self) -> str:
        typed = str(self.cleaned_data["confirmation"])
        if typed != self.wanted:
            raise forms.ValidationError(f"Type “{self.wanted}” to delete.")
        return typed


class AccountUserAdmin(CsvExportAdmin, UserAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    add_form = NewUserForm
    list_display: tuple[str, ...] = ("state", "email", "keys", "last_login", "created_at")
    list_display_links = ("email",)
    list_filter = ("is_active", "is_staff", "second_factor_required")
    list_per_page = 50
    show_full_result_count = False
    date_hierarchy = "created_at"
    search_fields = ("email", "=id")
    ordering = ("-created_at",)
    filter_horizontal = ()
    readonly_fields: ClassVar[tuple[str, ...]] = (
        *("is_active", "second_factor_required", "last_login", "created_at"),
    )
    fieldsets: ClassVar[tuple[Any, ...]] = (
        (None, {"fields": ("email", "email_verified", "is_active")}),
        ("Staff", {"fields": ("second_factor_required", "is_staff", "is_superuser", "groups")}),
        ("Times", {"fields": ("last_login", "created_at")}),
    )
    add_fieldsets = ((None, {"fields": ("email", "usable_password", "password1", "password2")}),)
    actions: tuple[str, ...] = (
        "disable",
        "enable",
        "set_password",
        "require_second_factor",
        "stop_requiring_second_factor",
        "erase",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        usable = ApiKey.objects.filter(revoked_at=None)
        rows = User.objects.order_by(*self.ordering)
        return rows.annotate(key_count=per_user_subquery(usable, Count("pk")))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Only a superuser grants staff rights; others could make themselves superusers."""
        powers = ("is_staff", "is_superuser", "groups")
        return (*self.readonly_fields, *(() if is_superuser(request) else powers))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Whoever sets another user's password or e-mail can log in with that user's rights.
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
        by = request_principal(request)
        record(action="update_user", by=by, subject=obj, owner=obj, fields=fields)
        return super().log_change(request, obj, message)

    @admin.display(ordering="is_active")
    def state(self, user: User) -> str:
        words = ["active" if user.is_active else "disabled"]
        words += ["superuser" if user.is_superuser else "staff"] * user.is_staff
        words += ["second factor required"] * user.second_factor_required
        return ", ".join(words)

    @admin.display(description="usable keys", ordering="key_count")
    def keys(self, user: Any) -> int:
        return int(user.key_count)

    @admin.action(description="Disable, with a reason…", permissions=["change"])
    def disable(self, request: HttpRequest, rows: QuerySet[User]) -> HttpResponse | None:
        form = ReasonForm(request.POST if "apply" in request.POST else None)
        form.fields["reason"].help_text = "For the audit log. For example: sends spam."
        if not form.is_valid():
            return confirm_page(
                request,
                self,
                rows,
                form=form,
                title="Disable accounts",
                action="disable",
                verb="Disable",
                consequence="Blocks sessions, keys, tokens and apps at once. Nothing is deleted.",
            )
        by, reason = request_principal(request), form.cleaned_data["reason"]
        apply_action(
            request,
            rows.filter(is_active=True),
            lambda user: user_administration.disable_user(user=user, by=by, reason=reason),
            one="user disabled",
            many="users disabled",
        )
        return None

    enable = row_action(
        "Enable again",
        lambda user, by: user_administration.enable_user(user=user, by=by),
        one="user enabled",
        many="users enabled",
        rows=lambda rows: rows.filter(is_active=False),
    )

    @admin.action(description="Set a password…", permissions=["change"])
    def set_password(self, request: HttpRequest, rows: QuerySet[User]) -> HttpResponse | None:
        """To Django's form. It is no field of the row's page, where it would show the digest."""
        user = rows.first()
        if user is None or rows.count() > 1 or not self.has_change_permission(request, user):
            messages.warning(request, "Choose one user whose password you may set.")
            return None
        return redirect("admin:auth_user_password_change", user.pk)

    require_second_factor = row_action(
        "Require a second factor",
        lambda user, by: user_administration.require_second_factor(user=user, by=by),
        one="user must set up a second factor",
        many="users must set up a second factor",
        rows=lambda rows: rows.filter(second_factor_required=False),
    )

    stop_requiring_second_factor = row_action(
        "Stop requiring a second factor",
        lambda user, by: user_administration.require_second_factor(
            user=user, by=by, required=False
        ),
        one="user no longer needs a second factor",
        many="users no longer need a second factor",
        rows=lambda rows: rows.filter(second_factor_required=True),
    )

    @admin.action(description="Delete permanently, at their request…", permissions=["delete_rows"])
    def erase(self, request: HttpRequest, rows: QuerySet[User]) -> HttpResponse | None:
        form = EraseForm(request.POST if "apply" in request.POST else None, users=list(rows))
        if not form.is_valid():
            counts = (user_administration.count_rows(user=user) for user in form.users)
            return confirm_page(
                request,
                self,
                rows,
                form=form,
                lines=[f"{user}: {words}" for user, words in zip(form.users, counts, strict=True)],
                title="Delete accounts permanently",
                action="erase",
                verb="Delete permanently",
                consequence="Deletes their playbooks, outcomes, keys and usage. This cannot be "
                "undone. To block a user, disable the account instead.",
            )
        by = request_principal(request)
        apply_action(
            request,
            rows,
            lambda user: user_administration.delete_user(user=user, by=by),
            one="account deleted",
            many="accounts deleted",
        )
        return None


def per_user_subquery(
    rows: QuerySet[Any], figure: Any, *, owner: str = "user", field: "Field[Any, Any] | None" = None
) -> Coalesce:
    """An aggregate of the rows of each user, 0 without any; one subquery for each user."""
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
