"""How many calls at once an endpoint bears, and how long one may take: learnt from its speed.

Additive increase, multiplicative decrease, as in TCP. Pure rules: the state is in the row of the
endpoint's circuit, so that every process shares it.
"""

import ipaddress
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

LOCAL_NAMES = (".local", ".internal", ".lan", ".localhost")
STRETCH, LONGEST_SECONDS = 5.0, 900.0
"""A deadline grows to so many times the configured one, and not beyond these seconds."""
ROOM, FADING = 4.0, 0.7
"""A deadline is so many times what the slowest recent answer took, which each quicker one fades."""


def longest_deadline(configured: float) -> float:
    """Seconds that no call exceeds, however slow its endpoint."""
    return max(configured, min(STRETCH * configured, LONGEST_SECONDS))


def is_local(base_url: str) -> bool:
    """Whether a server is on this machine or network: its first call may have to load the model."""
    host = urlsplit(base_url).hostname or ""
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(LOCAL_NAMES))


@dataclass
class AdaptiveLimits:
    """`calls`, `seconds`: the settings'. The rest is learnt; None: nothing yet.

    `lowered_at`: when a call last timed out for being one of too many, or too slow.
    """

    calls: int
    seconds: float
    local: bool = False
    most_calls: float | None = None
    slowest_seconds: float | None = None
    lowered_at: datetime | None = None

    @property
    def max_calls(self) -> int:
        return self.calls if self.most_calls is None else min(self.calls, int(self.most_calls))

    @property
    def deadline(self) -> float:
        """Seconds for a whole call; a local endpoint's first one gets the longest."""
        longest = longest_deadline(self.seconds)
        if self.slowest_seconds is None:
            return longest if self.local else self.seconds
        return min(longest, max(self.seconds, ROOM * self.slowest_seconds))

    def answered(self, after: float) -> bool:
        """Learn from an answer after so many seconds; true when that changed anything."""
        before, slowest = (self.most_calls, self.slowest_seconds), self.slowest_seconds or 0.0
        if ROOM * max(after, slowest) > self.seconds or (self.local and not slowest):
            self.slowest_seconds = max(after, FADING * slowest)
        if self.most_calls is not None and ROOM * after <= self.seconds:
            more = self.most_calls + 1 / self.most_calls
            self.most_calls = None if more >= self.calls else more
        return before != (self.most_calls, self.slowest_seconds)

    def timed_out(self, *, begun: datetime, now: datetime, together: int, after: float) -> bool:
        """Learn from a call that got no answer in `after` seconds, one of `together` at its time.

        False when neither fewer calls nor more time are left to try: the provider must be down.
        """
        if self.lowered_at is not None and begun < self.lowered_at:
            return True  # one of those for which the limits were lowered already
        if together > 1:
            self.most_calls = together // 2
        elif after < longest_deadline(self.seconds):
            self.slowest_seconds = 2 * after / ROOM
        elif self.lowered_at is not None:
            return False
        self.lowered_at = now
        return True
