"""The admin of users, and of third-party models: those without secrets, or not at all.

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

# Not used by us: an address is a field of the user, and the sweep needs no schedule.
for unused in (EmailAddress, Schedule, Success, Failure, OrmQ, Authenticator, UserSession):
    admin.site.unregister(unused)

admin.site.register(User, UserAdmin)


@admin.register(Authenticator)
class AuthenticatorAdmin(ReadOnlyAdmin):
    """That there is a second factor, and when it was used; never its secret."""

    list_display = ("type", "user", "created_at", "last_used_at")
    list_filter = ("type",)
    list_select_related = ("user",)
    search_fields = ("user__email",)
    exclude = ("data",)
    actions = ("remove",)

    remove = row_action(
        "Remove all factors of these people (lost device)",
        lambda user, by: user_administration.remove_second_factors(user=user, by=by),
        one="person has no second factor any more",
        many="people have no second factor any more",
        rows=lambda rows: User.objects.filter(pk__in=rows.values("user_id")),
    )


@admin.register(UserSession)
class UserSessionAdmin(ReadOnlyAdmin):
    """Where people are logged in; without the key that a browser could use."""

    list_display = ("user", "ip", "program", "created_at", "last_seen_at")
    list_select_related = ("user",)
    search_fields = ("user__email", "ip")
    exclude = ("session_key", "data")
    actions = ("end",)

    @admin.display(description="browser")
    def program(self, session: Any) -> str:
        return str(session.user_agent)[:80]

    end = row_action(
        "Log these people out everywhere",
        lambda user, by: user_administration.end_all_sessions(user=user, by=by),
        one="person is logged out",
        many="people are logged out",
        rows=lambda rows: User.objects.filter(pk__in=rows.values("user_id")),
    )


@admin.register(OrmQ)
class QueuedMessageAdmin(ReadOnlyAdmin):
    """Messages that only wake a worker up: without their content, which is signed code to run."""

    list_display = ("id", "lock")
    exclude = ("payload",)
    ordering = ("lock",)


@admin.register(Failure)
class FailureAdmin(ReadOnlyAdmin):
    """Tasks that raised, which ours do not: a row here is a fault of ours. Content is left out."""

    list_display = ("func", "started", "stopped", "attempt_count")
    exclude = ("args", "kwargs", "result", "hook")
    search_fields = ("func",)
