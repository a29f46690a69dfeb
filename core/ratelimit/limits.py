"""Rate limits of settings.RATE_LIMITS: counted by django-ratelimit, and all requests in memory."""

import ipaddress
import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from django.conf import settings
from django.core.cache import caches
from django_ratelimit import ALL
from django_ratelimit.core import _get_window, _make_cache_key, _split_rate, get_usage

from core.errors import RateLimited
from core.http.request_id import caller_id
from core.models import RateCounter


def consume_rate_limit(name: str, key: str, rate: str = "") -> None:
    """Count one use of the limit `name` by `key`; raise RateLimited when it is exceeded.

    `rate` instead of that of the settings. The count is one atomic step: of 200 parallel calls with
    20 allowed, exactly 20 pass.
    """
    rate = rate or settings.RATE_LIMITS[name]
    usage = get_usage(
        None, group=name, key=lambda _group, _request: _network(key), rate=rate, increment=True
    )
    if usage and usage["should_limit"]:
        which = f"Over the limit of {rate} for {name}."
        raise RateLimited(which, retry_after=int(usage["time_left"]))


def read_rate_limit(name: str, key: str, rate: str) -> "Allowance":
    """What `key` has left of the limit `name`; counts nothing."""
    limit, seconds = _split_rate(rate)
    window = _get_window(key, seconds)
    counter = _make_cache_key(name, window, rate, key, ALL)
    used = caches[settings.RATELIMIT_USE_CACHE].get(counter, 0)
    return Allowance(limit, limit - used, window - int(time.time()))


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


@dataclass(frozen=True)
class Allowance:
    """What is left of a user's requests; `reset` is in seconds."""

    limit: int
    remaining: int
    reset: int

    @property
    def headers(self) -> Mapping[str, str]:
        """As in the IETF's draft on rate limit fields."""
        values = {"Limit": self.limit, "Remaining": max(0, self.remaining), "Reset": self.reset}
        return {f"RateLimit-{name}": str(value) for name, value in values.items()}

    def check(self) -> None:
        """Raise RateLimited when nothing was left for this request."""
        if self.remaining < 0:
            which = f"Over the limit of {settings.RATE_LIMITS['requests']} for requests."
            raise RateLimited(which, retry_after=self.reset)


_lock = Lock()
_window = 0
_counts: Counter[str] = Counter()


def count_request(user_id: Any) -> Allowance:
    """Count a request of the user, and name them in its line of the log.

    In memory, since a read must not cost a write, so for each web process. What is exact or spends
    money has its own limit above.
    """
    global _window  # noqa: PLW0603 - one counter a process
    caller_id.set(str(user_id))
    limit, seconds = _split_rate(settings.RATE_LIMITS["requests"])
    window, passed = divmod(time.monotonic(), seconds)
    with _lock:
        if window != _window:
            _window = int(window)
            _counts.clear()
        _counts[str(user_id)] += 1
        used = _counts[str(user_id)]
    return Allowance(limit, limit - used, math.ceil(seconds - passed))
