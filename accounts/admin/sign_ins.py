"""Staff's view of the machinery of signing in; no secret and no answer of anybody in it."""

from django.contrib import admin

from accounts.models import LlmKey, LoginAttempts, RefreshToken
from core.admin import ReadOnlyAdmin


@admin.register(RefreshToken)
class RefreshTokenAdmin(ReadOnlyAdmin):
    list_display = ("user", "created_at", "expires_at", "used_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("user__email",)
    exclude = ("digest",)


@admin.register(LlmKey)
class LlmKeyAdmin(ReadOnlyAdmin):
    """Whose evolutions are charged to a key of their own; never the key."""

    list_display = ("user", "ends_in", "base_url", "updated_at")
    list_select_related = ("user",)
    search_fields = ("user__email", "base_url")
    exclude = ("encrypted_key",)

    @admin.display
    def ends_in(self, key: LlmKey) -> str:
        return f"…{key.last_four}"


@admin.register(LoginAttempts)
class LoginAttemptsAdmin(ReadOnlyAdmin):
    """Delays after wrong passwords, by a digest that names nobody; the longest is 15 minutes."""

    list_display = ("failures", "wait_until")
    exclude = ("key",)
