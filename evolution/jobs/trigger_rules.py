"""Trigger rules: N outcomes are pending, or one has been for T hours. Pure."""

from datetime import datetime, timedelta
from typing import Literal

Cause = Literal["threshold", "time"]


def enough_pending(pending: int, *, threshold: int) -> bool:
    """The first rule: N outcomes are pending."""
    return pending >= max(1, threshold)


def time_is_up(pending: int, *, hours: int, since: datetime | None, now: datetime) -> bool:
    """The second rule: T hours since `since`, with at least one outcome; 0 hours switches it off.

    `since` is the end of the last evolution, whatever became of it, or the arrival of the oldest
    pending outcome when there never was one.
    """
    if pending < 1 or not hours or since is None:
        return False
    return now - since >= timedelta(hours=hours)


def is_due(
    pending: int, *, threshold: int, hours: int, since: datetime | None, now: datetime
) -> Cause | None:
    """The rule by which an evolution is due, or None."""
    if enough_pending(pending, threshold=threshold):
        return "threshold"
    return "time" if time_is_up(pending, hours=hours, since=since, now=now) else None


def cool_off_period(failures: int) -> timedelta:
    """How long automatic evolutions pause after this many failures in a row.

    10 minutes, doubling to a day: otherwise every report would repeat, and pay for, the same
    failure. People can still trigger or retry at once.
    """
    return min(timedelta(minutes=10) * (1 << min(failures - 1, 10)), timedelta(days=1))
