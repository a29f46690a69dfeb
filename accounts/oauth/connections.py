"""Connected apps: connecting, disconnecting, the principal of an app's token, and cleanup."""

import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.core.cache import cache
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, Grant, RefreshToken, clear_expired

from accounts.keys.authentication import record_last_used
from accounts.keys.key_format import digest
from accounts.models import ConnectedApp, User
from core import audit
from core.emails import send_security_notice
from core.errors import InvalidCredential
from core.security.scopes import KEY_SCOPES, Principal, granted_scopes

ACCESS, REFRESH = "ace_oat_", "ace_ort_"
"""Prefixes of tokens, which tell them from API keys."""
UNUSED_CLIENT_AGE, LEFT_CLIENT_AGE = timedelta(days=1), timedelta(days=90)
CREATION_TOLERANCE = timedelta(seconds=1)
INTERVAL_SECONDS = 3600.0


def make_access_token(request: object) -> str:
    """256 random bits; oauthlib passes its request, which is not used."""
    return ACCESS + secrets.token_urlsafe(32)


def make_refresh_token(request: object) -> str:
    return REFRESH + secrets.token_urlsafe(32)


def connect_app(
    *, user: User, client: Application, redirect_host: str, scopes: Iterable[str]
) -> ConnectedApp:
    """Record the user's consent to this client for exactly these scopes."""
    agreed = [scope.value for scope in KEY_SCOPES if scope in set(scopes)]
    with transaction.atomic():
        _touch(client)
        app, _ = ConnectedApp.objects.update_or_create(
            user=user,
            application=client,
            defaults={"scopes": agreed, "redirect_host": redirect_host},
        )
        audit.record(
            action="connect_app",
            by=user,
            subject=app,
            name=app.name,
            redirect_host=redirect_host,
            scopes=" ".join(agreed),
        )
        send_security_notice(user, f"The app “{app.name}” was connected")
    return app


def disconnect_app(*, app: ConnectedApp, by: User | Principal | None) -> None:
    """Delete the connection with all its codes and tokens, effective from the next request.

    `by` is None for the platform: the app revoked its last token, or was idle.
    """
    owned = {"user": app.user_id, "application": app.application_id}
    with transaction.atomic():
        # Locks all token families, see validators.py: no token is issued meanwhile.
        ConnectedApp.objects.select_for_update(of=("self",), no_key=True).filter(pk=app.pk).first()
        audit.record(action="disconnect_app", by=by, subject=app, owner=app.user, name=app.name)
        RefreshToken.objects.filter(**owned).delete()
        AccessToken.objects.filter(**owned).delete()
        Grant.objects.filter(**owned).delete()
        app.delete()
        _touch(app.application)


def is_app_token(token: str) -> bool:
    return token.startswith(ACCESS)


def principal_for_app(*, token: str, resource: str) -> Principal:
    """The principal of a connected app's token for this resource; one query.

    Raises InvalidCredential: unknown, expired or revoked, of an inactive user, or for another
    resource.
    """
    now = timezone.now()
    rows = ConnectedApp.objects.filter(
        application__accesstoken__token_checksum=digest(token),
        application__accesstoken__expires__gt=now,
        application__accesstoken__user=F("user"),
        user__is_active=True,
    ).annotate(
        granted=F("application__accesstoken__scope"),
        resources=F("application__accesstoken__resource"),
    )
    app: Any = rows.select_related("user", "application").first()
    if app is None or resource not in app.resources:
        raise InvalidCredential
    record_last_used(app)
    scopes = granted_scopes(app.granted.split()) & granted_scopes(app.scopes)
    return Principal(user=app.user, scopes=scopes, app=app)


def end_idle_connections(*, client: Application | None = None) -> int:
    """Delete connections without codes and tokens, of one client or of all; returns how many."""
    idle = ConnectedApp.objects.idle().select_related("user", "application")
    rows = list(idle.filter(application=client) if client is not None else idle)
    for app in rows:
        disconnect_app(app=app, by=None)
    return len(rows)


def clear_oauth() -> dict[str, int]:
    """Delete expired codes and tokens, idle connections and unused clients; returns how many.

    Used refresh tokens stay until they expire, to detect reuse. A client that was connected once
    may come back with its old id, so it is kept longer.
    """
    clear_expired()
    connections = end_idle_connections()
    now = timezone.now()
    never_used = Q(
        updated__lt=F("created") + CREATION_TOLERANCE, created__lt=now - UNUSED_CLIENT_AGE
    )
    in_use = Exists(ConnectedApp.objects.filter(application=OuterRef("pk"))) | Exists(
        Grant.objects.filter(application=OuterRef("pk"))
    )
    clients = Application.objects.filter(never_used | Q(updated__lt=now - LEFT_CLIENT_AGE))
    clients = clients.exclude(registration_source=Application.RegistrationSource.MANUAL)
    _, deleted = clients.exclude(in_use).delete()
    return {"connections": connections, "clients": deleted.get(Application._meta.label, 0)}


def clear_oauth_if_due() -> None:
    """Run clear_oauth once an hour on one host: `cache.add` is atomic."""
    if cache.add("clear-oauth", 1, INTERVAL_SECONDS):
        clear_oauth()


def _touch(client: Application) -> None:
    """Mark the client as used now, for clear_oauth."""
    Application.objects.filter(pk=client.pk).update(updated=timezone.now())
