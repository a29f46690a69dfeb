"""The admin of users and third-party models: shown without secrets, or not at all.

The last admin module that Django loads, so that what it unregisters is registered.
"""

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django_q.models import Failure, OrmQ, Schedule, Success

from accounts.models import User
from accounts.services import user_administration
from config.admin_site.users import UserAdmin
from core.admin import ReadOnlyAdmin, row_action

# Unused (an e-mail address is a field of the user, django-q only keeps messages) or replaced below.
for unused in (EmailAddress, Schedule, Success, Failure, OrmQ, Authenticator, UserSession):
    admin.site.unregister(unused)

admin.site.register(User, UserAdmin)


@admin.register(Authenticator)
class AuthenticatorAdmin(ReadOnlyAdmin):
    """Second factors by type and last use; never their secret."""

    list_display = ("type", "user", "created_at", "last_used_at")
    list_filter = ("type",)
    list_select_related = ("user",)
    search_fields = ("user__email",)
    exclude = ("data",)
    actions = ("remove",)

    remove = row_action(
        "Remove all second factors of these users (lost device)",
        lambda user, by: user_administration.remove_second_factors(user=user, by=by),
        one="user has no second factor now",
        many="users have no second factor now",
        permission="delete_rows",
        rows=lambda rows: User.objects.filter(pk__in=rows.values("user_id")),
    )


@admin.register(UserSession)
class UserSessionAdmin(ReadOnlyAdmin):
    """Browser sessions, without the key that would open them."""

    list_display = ("user", "ip", "program", "created_at", "last_seen_at")
    list_select_related = ("user",)
    search_fields = ("user__email", "ip")
    exclude = ("session_key", "data")
    actions = ("end",)

    @admin.display(description="browser")
    def program(self, session: Any) -> str:
        return str(session.user_agent)[:80]

    end = row_action(
        "Log these users out everywhere",
        lambda user, by: user_administration.end_all_sessions(user=user, by=by),
        one="user is logged out",
        many="users are logged out",
        permission="delete_rows",
        rows=lambda rows: User.objects.filter(pk__in=rows.values("user_id")),
    )
