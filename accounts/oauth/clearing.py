"""What nobody needs any more goes: spent tokens, connections without one, clients nobody let in."""

from datetime import timedelta

from django.core.cache import cache
from django.db.models import Exists, OuterRef
from django.utils import timezone
from oauth2_provider.models import Application, Grant, clear_expired

from accounts.models import ConnectedApp
from accounts.oauth.connections import end_idle_connections

UNUSED_AFTER = timedelta(days=1)
EVERY = 3600.0


def clear_oauth() -> dict[str, int]:
    """Expired codes and tokens, idle connections and never-used clients are gone; how many of each.

    Spent refresh tokens stay until they would have expired: they are what tells reuse.
    """
    clear_expired()
    connections = end_idle_connections()
    used = Exists(ConnectedApp.objects.filter(application=OuterRef("pk"))) | Exists(
        Grant.objects.filter(application=OuterRef("pk"))
    )
    unused = Application.objects.filter(created__lt=timezone.now() - UNUSED_AFTER).exclude(used)
    unused = unused.exclude(registration_source=Application.RegistrationSource.MANUAL)
    _, deleted = unused.delete()
    clients = deleted.get(Application._meta.label, 0)
    return {"connections": connections, "clients": clients}


def clear_oauth_if_due() -> None:
    """Once an hour, by whichever host comes first: the counter's add is one atomic step."""
    if cache.add("clear-oauth", 1, EVERY):
        clear_oauth()
