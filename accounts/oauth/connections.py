"""What a person has agreed to: connecting an app, ending that, and who comes with its token."""

import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import F, Q
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, Grant, RefreshToken

from accounts.keys.key_format import digest
from accounts.models import ConnectedApp, User
from accounts.oauth.token_formats import ACCESS
from core import audit
from core.errors import NotAuthenticated
from core.security.scopes import KEY_SCOPES, Principal

logger = logging.getLogger(__name__)
LAST_USED_STEP = timedelta(minutes=1)


def connect_app(
    *, user: User, client: Application, redirect_host: str, scopes: Iterable[str]
) -> ConnectedApp:
    """The person has let this client in, for these scopes and no others from now on."""
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
    return app


def disconnect_app(*, app: ConnectedApp, by: User | Principal | None) -> None:
    """None of the app's tokens and codes for this person works any more, from the next request on.

    `by` is None when the platform ends it: the app itself gave its last token back, or idled.
    """
    held = {"user": app.user_id, "application": app.application_id}
    with transaction.atomic():
        # The lock of all its families, see grants.py: no token is made meanwhile.
        ConnectedApp.objects.select_for_update(of=("self",), no_key=True).filter(pk=app.pk).first()
        audit.record(action="disconnect_app", by=by, subject=app, owner=app.user, name=app.name)
        RefreshToken.objects.filter(**held).delete()
        AccessToken.objects.filter(**held).delete()
        Grant.objects.filter(**held).delete()
        app.delete()
        _touch(app.application)


def is_app_token(token: str) -> bool:
    return token.startswith(ACCESS)


def principal_for_app(*, token: str, resource: str) -> Principal:
    """Who is behind this token of a connected app, at this resource; one query.

    Raises NotAuthenticated: unknown, expired or revoked, of a person who may not log in, or for
    another resource.
    """
    now = timezone.now()
    rows = ConnectedApp.objects.filter(
        application__accesstoken__token_checksum=digest(token),
        application__accesstoken__expires__gt=now,
        application__accesstoken__user=F("user"),
        user__is_active=True,
    ).annotate(
        held=F("application__accesstoken__scope"),
        good_for=F("application__accesstoken__resource"),
    )
    app: Any = rows.select_related("user", "application").first()
    if app is None or resource not in app.good_for:
        raise NotAuthenticated
    _record_last_used(app)
    held = set(app.held.split()) & set(app.scopes)
    scopes = frozenset(scope for scope in KEY_SCOPES if scope in held)
    return Principal(user=app.user, scopes=scopes, app=app)


def end_idle_connections(*, client: Application | None = None) -> int:
    """Connections that hold nothing any more are gone, of this client or of all; how many."""
    idle = ConnectedApp.objects.idle().select_related("user", "application")
    rows = list(idle.filter(application=client) if client is not None else idle)
    for app in rows:
        disconnect_app(app=app, by=None)
    return len(rows)


def _touch(client: Application) -> None:
    """Somebody had to do with it now: see clearing.py."""
    Application.objects.filter(pk=client.pk).update(updated=timezone.now())


def _record_last_used(app: ConnectedApp) -> None:
    """Write last_used_at at most once a minute; a failure costs the figure, not the request."""
    now = timezone.now()
    if app.last_used_at is not None and app.last_used_at >= now - LAST_USED_STEP:
        return
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - LAST_USED_STEP)
    try:
        with transaction.atomic():
            ConnectedApp.objects.filter(stale, pk=app.pk).update(last_used_at=now)
    except DatabaseError as error:
        logger.warning("Could not note the use of app %s: %s", app.pk, type(error).__name__)
