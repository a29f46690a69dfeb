"""The limit on all requests of a user: counted in memory, since a read must not cost a write.

So it holds for each web process. What is exact or spends money has its own limit in the database.
"""

import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from django.conf import settings
from django_ratelimit.core import _split_rate

from core.errors import RateLimited

NAME = "requests"


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
            rate = settings.RATE_LIMITS[NAME]
            raise RateLimited.over_limit(NAME, rate, retry_after=self.reset)


_lock = Lock()
_window = 0
_counts: Counter[str] = Counter()


def count_request(user_id: Any) -> Allowance:
    """Count a request of the user in the current window."""
    global _window  # noqa: PLW0603 - one counter a process
    limit, seconds = _split_rate(settings.RATE_LIMITS[NAME])
    window, passed = divmod(time.monotonic(), seconds)
    with _lock:
        if window != _window:
            _window = int(window)
            _counts.clear()
        _counts[str(user_id)] += 1
        used = _counts[str(user_id)]
    return Allowance(limit, limit - used, math.ceil(seconds - passed))
