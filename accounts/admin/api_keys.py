"""The admin of API keys, with an action that revokes a leaked one, and of users' LLM keys."""

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from accounts.keys.api_keys import revoke_api_key
from accounts.models import ApiKey, LlmKey, WebhookDelivery, WebhookEndpoint
from core.admin import OwnerFilter, ReadOnlyAdmin, apply_action, confirm_page, request_principal


class ReasonForm(forms.Form):
    reason = forms.CharField(
        max_length=200, help_text="Shown to its user. For example: found in a public repository."
    )


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """API keys without their digests."""

    list_display = ("state", "name", "hint", "user", "may", "last_used_at", "expires_at")
    list_display_links = ("name",)
    list_filter = (
        ("revoked_at", admin.EmptyFieldListFilter),
        ("last_used_at", admin.EmptyFieldListFilter),
    )
    list_select_related = ("user",)
    date_hierarchy = "created_at"
    search_fields = ("name", "prefix", "user__email", "=id")
    exclude = ("digest",)
    actions = ("revoke",)
    csv_columns = (
        *("user__email", "name", "prefix", "created_at", "expires_at", "last_used_at"),
        *("revoked_at", "revoked_reason"),
    )

    @admin.display
    def state(self, key: ApiKey) -> str:
        disabled = key.state == "active" and not key.user.is_active
        return "user disabled" if disabled else key.state

    @admin.display
    def may(self, key: ApiKey) -> str:
        return ", ".join(key.scopes) or "nothing"

    @admin.action(description="Revoke, with a reason", permissions=["change"])
    def revoke(self, request: HttpRequest, rows: QuerySet[ApiKey]) -> HttpResponse | None:
        form = ReasonForm(request.POST if "apply" in request.POST else None)
        if not form.is_valid():
            return confirm_page(
                request,
                self,
                rows,
                form=form,
                title="Revoke API keys",
                action="revoke",
                verb="Revoke",
                consequence="Requests with these keys will be rejected.",
            )
        by, reason = request_principal(request), f"By staff: {form.cleaned_data['reason']}"
        apply_action(
            request,
            rows.filter(revoked_at=None),
            lambda key: revoke_api_key(key=key, reason=reason, by=by),
            one="key revoked",
            many="keys revoked",
        )
        return None


@admin.register(LlmKey)
class LlmKeyAdmin(ReadOnlyAdmin):
    """Users whose evolutions are charged to a key of their own; never the key."""

    list_display = ("user", "ends_in", "base_url", "updated_at")
    list_select_related = ("user",)
    search_fields = ("user__email", "base_url")
    exclude = ("encrypted_key",)

    @admin.display
    def ends_in(self, key: LlmKey) -> str:
        return f"…{key.last_four}"


@admin.register(WebhookEndpoint)
class WebhookEndpointAdmin(ReadOnlyAdmin):
    """Webhooks without their secret; a URL may have a token behind its `?`."""

    list_display = ("user", "__str__", "failures", "disabled_at", "updated_at")
    list_filter = (OwnerFilter.by("user"),)
    list_select_related = ("user",)
    search_fields = ("user__email",)
    exclude = ("encrypted_key", "url")


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    list_display = ("event", "endpoint", "attempts", "status", "error", "next_attempt_at")
    list_select_related = ("endpoint",)
    list_filter = (OwnerFilter.by("endpoint__user"), "event")
    date_hierarchy = "created_at"
    search_fields = ("=id", "endpoint__user__email")
