"""Rate limits: defined in settings.RATE_LIMITS, counted by django-ratelimit."""

import ipaddress
import time

from django.conf import settings
from django_ratelimit.core import get_usage

from core.errors import RateLimited
from core.models import RateCounter


def consume_rate_limit(name: str, key: str) -> None:
    """Count one use of the limit `name` by `key`; raise RateLimited when it is exceeded.

    The count is one atomic step: of 200 parallel calls with 20 allowed, exactly 20 pass.
    """
    usage = get_usage(
        None,
        group=name,
        key=lambda _group, _request: _network(key),
        rate=settings.RATE_LIMITS[name],
        increment=True,
    )
    if usage and usage["should_limit"]:
        wait = int(usage["time_left"])
        raise RateLimited.over_limit(name, settings.RATE_LIMITS[name], retry_after=wait)


def _network(key: str) -> str:
    """For an IPv6 address its /64, which one client usually controls as a whole."""
    try:
        address = ipaddress.IPv6Address(key)
    except ValueError:
        return key
    return str(ipaddress.ip_network((address, 64), strict=False))


def delete_expired_rate_counters() -> None:
    """Delete the counters of windows that have ended; Redis expires its own."""
    RateCounter.objects.filter(expires_at__lt=time.time()).delete()
