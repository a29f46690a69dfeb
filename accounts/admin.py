"""Staff's view of people and keys, and what the admin pages of every app share."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminUserCreationForm
from django.contrib.auth.models import Group
from django.db.models import Count, Model, QuerySet
from django.http import HttpRequest

from accounts import services
from accounts.errors import AceError
from accounts.models import ApiKey, RateCounter, RefreshToken, StoredAnswer, User

M = TypeVar("M", bound=Model)
admin.site.site_header = admin.site.site_title = "ACE Platform: staff"
admin.site.index_title = "What there is"
admin.site.unregister(Group)


class MachineRows(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """Rows that the platform writes: staff look, search, and act through actions only."""

    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        # Without a row it is what actions ask for; the form of a row is never writable.
        return obj is None and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def act_on(
    request: HttpRequest, rows: QuerySet[M], act: Callable[[M], object], *, done: str
) -> None:
    """Call a service for each row; say how many changed, and why the others did not."""
    changed = 0
    for row in rows:
        try:
            act(row)
            changed += 1
        except AceError as error:
            messages.warning(request, f"{row}: {error.message}")
    level = messages.SUCCESS if changed else messages.WARNING
    messages.add_message(request, level, f"{changed} {done}.")


class NewUserForm(AdminUserCreationForm):  # type: ignore[type-arg]  # generic in its stubs only
    class Meta:
        model = User
        fields = ("email",)

    def clean_email(self) -> str:
        return str(self.cleaned_data["email"]).lower()


@admin.register(User)
class PeopleAdmin(UserAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    add_form = NewUserForm
    list_display = ("email", "is_active", "is_staff", "playbooks", "keys", "last_login", "joined")
    list_filter = ("is_active", "is_staff", "is_superuser")
    date_hierarchy = "created_at"
    search_fields = ("email",)
    ordering = ("-created_at",)
    filter_horizontal = ("user_permissions",)
    readonly_fields = ("last_login", "created_at")
    fieldsets = (
        (None, {"fields": ("email", "password", "email_verified", "is_active")}),
        ("Staff", {"fields": ("is_staff", "is_superuser", "user_permissions")}),
        ("Times", {"fields": ("last_login", "created_at")}),
    )
    add_fieldsets = ((None, {"fields": ("email", "usable_password", "password1", "password2")}),)

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        return User.objects.order_by(*self.ordering).annotate(
            playbook_count=Count("playbooks", distinct=True),
            key_count=Count("api_keys", distinct=True),
        )

    @admin.display(ordering="playbook_count")
    def playbooks(self, user: Any) -> int:
        return int(user.playbook_count)

    @admin.display(description="API keys", ordering="key_count")
    def keys(self, user: Any) -> int:
        return int(user.key_count)

    @admin.display(ordering="created_at")
    def joined(self, user: User) -> Any:
        return user.created_at


class KeyStateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("usable", "usable"), ("revoked", "revoked"), ("unused", "never used")]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "usable":
                return rows & ApiKey.objects.usable()
            case "revoked":
                return rows.exclude(revoked_at=None)
            case "unused":
                return rows.filter(last_used_at=None)
        return rows


@admin.register(ApiKey)
class ApiKeyAdmin(MachineRows):
    list_display = ("name", "prefix", "user", "state", "may", "last_used_at", "expires_at")
    list_filter = (KeyStateFilter,)
    list_select_related = ("user",)
    date_hierarchy = "created_at"
    search_fields = ("name", "prefix", "user__email")
    exclude = ("digest",)
    actions = ("revoke",)

    @admin.display
    def may(self, key: ApiKey) -> str:
        return ", ".join(key.scopes) or "nothing"

    @admin.action(description="Revoke", permissions=["change"])
    def revoke(self, request: HttpRequest, rows: QuerySet[ApiKey]) -> None:
        reason = f"revoked by staff ({request.user})"
        act_on(
            request,
            rows.filter(revoked_at=None),
            lambda key: services.revoke_api_key(key=key, reason=reason),
            done="keys revoked",
        )


@admin.register(RefreshToken)
class RefreshTokenAdmin(MachineRows):
    list_display = ("user", "created_at", "expires_at", "used_at", "revoked_at")
    list_select_related = ("user",)
    date_hierarchy = "created_at"
    search_fields = ("user__email",)
    exclude = ("digest",)


@admin.register(StoredAnswer)
class StoredAnswerAdmin(MachineRows):
    """Without the body: it is the answer that one person got."""

    list_display = ("key", "user", "status", "created_at")
    list_select_related = ("user",)
    date_hierarchy = "created_at"
    search_fields = ("key", "user__email")
    exclude = ("body",)


@admin.register(RateCounter)
class RateCounterAdmin(MachineRows):
    list_display = ("key", "value", "expires_at")
    search_fields = ("key",)
