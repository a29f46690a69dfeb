"""Cache backends of shared counters: in the database, and for rate limits in Redis too.

Django's DatabaseCache reads, then writes: with 300 parallel requests and 50 allowed, 97 to 147
passed. Here `add` and `incr` are one upsert each, exact on SQLite and PostgreSQL.
"""

import time
from functools import cache
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.core.cache.backends.redis import RedisCache
from django.db import connection

UPSERT = """
INSERT INTO core_ratecounter (key, value, expires_at) VALUES (%s, %s, %s)
ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
WHERE core_ratecounter.expires_at <= %s RETURNING value
"""
UPSERT_AND_ADD = """
INSERT INTO core_ratecounter (key, value, expires_at) VALUES (%s, %s, %s)
ON CONFLICT (key) DO UPDATE SET
  value = excluded.value
    + CASE WHEN core_ratecounter.expires_at > %s THEN core_ratecounter.value ELSE 0 END,
  expires_at = CASE WHEN core_ratecounter.expires_at > %s
    THEN core_ratecounter.expires_at ELSE excluded.expires_at END
RETURNING value
"""
INCREMENT = """
UPDATE core_ratecounter SET value = value + %s WHERE key = %s AND expires_at > %s
RETURNING value
"""
COUNT_IN_REDIS = """
local count = redis.call('INCRBY', KEYS[1], ARGV[1])
if count == tonumber(ARGV[1]) then redis.call('EXPIRE', KEYS[1], ARGV[2]) end
return count
"""


class DatabaseCounterCache(BaseCache):
    """A cache of integers with an expiry, in the default database."""

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    def _expiry(self, timeout: Any) -> float:
        seconds = self.default_timeout if timeout is DEFAULT_TIMEOUT else timeout
        return time.time() + (10 * 365 * 86_400 if seconds is None else float(seconds))

    def _one(self, sql: str, params: list[Any]) -> Any:
        with connection.prepared_cursor() as cursor:  # type: ignore[attr-defined]  # of both engines
            cursor.execute(sql, params)
            row = cursor.fetchone()
        return None if row is None else row[0]

    def add(
        self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> bool:
        """Store `value` unless a live counter exists; True when it was stored.

        Anything but an integer counts as 1: allauth marks a used code with "y".
        """
        name = self.make_and_validate_key(key, version)
        number = value if isinstance(value, int) else 1
        row = self._one(UPSERT, [name, number, self._expiry(timeout), time.time()])
        return row is not None

    def incr(self, key: str, delta: int = 1, version: int | None = None) -> int:
        """Add `delta` in one statement and return the new value; ValueError without a counter."""
        name = self.make_and_validate_key(key, version)
        value = self._one(INCREMENT, [delta, name, time.time()])
        if value is None:
            raise ValueError(f"Key '{key}' not found")
        return int(value)

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        name = self.make_and_validate_key(key, version)
        value = self._one(
            "SELECT value FROM core_ratecounter WHERE key = %s AND expires_at > %s",
            [name, time.time()],
        )
        return default if value is None else value

    def set(
        self, key: str, value: int, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> None:
        self.delete(key, version)
        self.add(key, value, timeout, version)

    def delete(self, key: str, version: int | None = None) -> bool:
        name = self.make_and_validate_key(key, version)
        row = self._one("DELETE FROM core_ratecounter WHERE key = %s RETURNING value", [name])
        return row is not None

    def clear(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM core_ratecounter")


class _RateLimitCache(BaseCache):
    """The counters for django-ratelimit, which calls `add` and, when that returns False, `incr`.

    `add` counts in one step, and `incr` returns that count. A cache object belongs to one thread,
    so no other request's count comes in between.
    """

    _counted: tuple[str, int] | None = None

    def count(self, name: str, value: int, timeout: Any) -> int:
        """Add `value` to the live counter or start one; its count."""
        raise NotImplementedError

    def add(
        self, key: str, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None
    ) -> bool:
        """Add `value` to the counter; True when the counter started with it."""
        name = self.make_and_validate_key(key, version)
        count = self.count(name, value, timeout)
        self._counted = (name, count)
        return bool(count == value)

    def incr(self, key: str, delta: int = 1, version: int | None = None) -> int:
        """The count of the preceding `add` for this key; without one, add `delta`."""
        counted, self._counted = self._counted, None
        if counted is not None and counted[0] == self.make_and_validate_key(key, version):
            return counted[1]
        return super().incr(key, delta, version)


class RateLimitCache(_RateLimitCache, DatabaseCounterCache):
    """In the default database."""

    def count(self, name: str, value: int, timeout: Any) -> int:
        now = time.time()
        return int(self._one(UPSERT_AND_ADD, [name, value, self._expiry(timeout), now, now]))


@cache
def _redis_client(url: str) -> Any:
    """For all threads: each MCP request has new cache objects, and theirs would connect anew."""
    from redis import Redis  # noqa: PLC0415 - where there is none, nobody pays for its import

    return Redis.from_url(url)


class RedisRateLimitCache(_RateLimitCache, RedisCache):
    """In Redis by one script: Django's `add` and `incr` are three requests."""

    def count(self, name: str, value: int, timeout: Any) -> int:
        seconds = self.get_backend_timeout(timeout)
        client = _redis_client(self._servers[0])  # type: ignore[attr-defined]  # not in the stubs
        return int(client.eval(COUNT_IN_REDIS, 1, name, value, seconds))
