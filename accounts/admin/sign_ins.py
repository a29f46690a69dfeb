"""Staff's view of the machinery of signing in; no secret and no answer of anybody in it."""

from django.contrib import admin

from accounts.admin.rows import MachineRows
from accounts.models import Attempts, LlmKey, RateCounter, RefreshToken, StoredAnswer


@admin.register(RefreshToken)
class RefreshTokenAdmin(MachineRows):
    list_display = ("user", "created_at", "expires_at", "used_at", "revoked_at")
    list_select_related = ("user",)
    search_fields = ("user__email",)
    exclude = ("digest",)


@admin.register(StoredAnswer)
class StoredAnswerAdmin(MachineRows):
    """Without the body: it is the answer that one person got."""

    list_display = ("key", "user", "status", "created_at")
    list_select_related = ("user",)
    search_fields = ("key", "user__email")
    exclude = ("body", "request_hash")


@admin.register(RateCounter)
class RateCounterAdmin(MachineRows):
    list_display = ("key", "value", "expires_at")
    search_fields = ("key",)


@admin.register(LlmKey)
class LlmKeyAdmin(MachineRows):
    """Whose evolutions are charged to a key of their own; never the key."""

    list_display = ("user", "ends_in", "base_url", "updated_at")
    list_select_related = ("user",)
    search_fields = ("user__email", "base_url")
    exclude = ("sealed",)

    @admin.display
    def ends_in(self, key: LlmKey) -> str:
        return f"…{key.last_four}"


@admin.register(Attempts)
class AttemptsAdmin(MachineRows):
    """Delays after wrong passwords, by a digest that names nobody; the longest is 15 minutes."""

    list_display = ("failures", "wait_until")
    exclude = ("key",)
