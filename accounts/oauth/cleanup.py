"""Deletion of expired tokens, connections without tokens, and clients without connections."""

from datetime import timedelta

from django.core.cache import cache
from django.db.models import Exists, F, OuterRef, Q
from django.utils import timezone
from oauth2_provider.models import Application, Grant, clear_expired

from accounts.models import ConnectedApp
from accounts.oauth.connections import end_idle_connections

UNUSED_CLIENT_AGE, LEFT_CLIENT_AGE = timedelta(days=1), timedelta(days=90)
CREATION_TOLERANCE = timedelta(seconds=1)
INTERVAL_SECONDS = 3600.0


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
