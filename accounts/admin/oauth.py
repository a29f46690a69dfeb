"""The admin of connected apps and OAuth clients; none of these rows has a secret in clear text.

django-oauth-toolkit registers its models with the classes that settings.OAUTH2_PROVIDER names.
"""

from typing import Any

from django.contrib import admin
from django.db.models import Count, Exists, Model, OuterRef, QuerySet
from django.http import HttpRequest
from oauth2_provider.models import RefreshToken

from accounts.models import ConnectedApp
from accounts.oauth.connections import disconnect_app
from core.admin import ReadOnlyAdmin, row_action


@admin.register(ConnectedApp)
class ConnectedAppAdmin(ReadOnlyAdmin):
    list_display = ("name", "redirect_host", "user", "may", "last_used_at", "created_at", "is_live")
    list_filter = ("application__registration_source",)
    list_select_related = ("user", "application")
    date_hierarchy = "created_at"
    search_fields = ("application__name", "redirect_host", "user__email")
    actions = ("disconnect",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ConnectedApp]:
        same = {"user": OuterRef("user"), "application": OuterRef("application")}
        live = Exists(RefreshToken.objects.filter(**same, revoked=None))
        return ConnectedApp.objects.annotate(is_signed_in=live)

    @admin.display
    def may(self, app: ConnectedApp) -> str:
        return ", ".join(app.scopes) or "nothing"

    @admin.display(boolean=True, description="signed in")
    def is_live(self, app: Any) -> bool:
        return bool(app.is_signed_in)

    disconnect = row_action(
        "Disconnect",
        lambda app, by: disconnect_app(app=app, by=by),
        one="app disconnected",
        many="apps disconnected",
        permission="delete_rows",
        rows=lambda rows: rows.select_related("user", "application"),
    )


class ClientAdmin(ReadOnlyAdmin):
    """OAuth clients: their metadata, and how many users connected them."""

    list_display = ("name", "client_type", "registration_source", "users", "created")
    list_filter = ("registration_source", "client_type")
    date_hierarchy = "created"
    search_fields = ("name", "client_id", "redirect_uris")
    fields = (
        *("name", "client_id", "client_type", "registration_source", "redirect_uris"),
        *("created", "updated", "cimd_expires_at"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        counted: QuerySet[Any] = rows.annotate(user_count=Count("connections"))
        return counted

    @admin.display(ordering="user_count")
    def users(self, client: Any) -> int:
        return int(client.user_count)


class HiddenAdmin(ReadOnlyAdmin):
    """Codes and tokens: staff see the connected app instead."""

    def has_view_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
