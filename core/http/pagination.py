"""Keyset pagination of HTML lists, newest first: no page counts rows.

A numbered page would read all rows before it, and count all rows to know how many there are.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db.models import AutoField, Model, Q, QuerySet

M = TypeVar("M", bound=Model)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
MAX_CURSOR = 2**53
"""In microseconds the year 2255; a cursor beyond it, or beyond a key's range, is not ours."""


class KeysetPage(Generic[M]):
    """One page of `rows`: the newest, or those `before` or `after` the cursor in the query.

    `newer` and `older` are the cursors of the adjacent pages, empty where there is none. Ordered
    by (created_at, pk), or by pk alone if it is serial; either needs an index in that order.
    """

    def __init__(self, rows: QuerySet[M], query: Mapping[str, Any], *, size: int = 50) -> None:
        self.rows, self.size = rows, size
        self.by_key = isinstance(rows.model._meta.pk, AutoField)
        self.newer = self.older = ""
        before, after = query.get("before", ""), query.get("after", "")
        self.found = self._page(before, "lt") or self._page(after, "gt") or self._page()

    def __iter__(self) -> Iterator[M]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    @property
    def is_all(self) -> bool:
        """True when the page has all rows."""
        return not (self.newer or self.older)

    def _page(self, cursor: str = "", lookup: str = "") -> list[M]:
        """The first rows, or the next ones older (lt) or newer (gt) than the cursor.

        None for a malformed cursor, and when the newer ones are on the first page.
        """
        rows, position = self.rows, self._decode(cursor)
        if lookup:
            if position is None:
                return []
            rows = rows.filter(self._beyond(position, lookup))
        sign, step = ("", -1) if lookup == "gt" else ("-", 1)
        columns = ["pk"] if self.by_key else ["created_at", "pk"]
        found = list(rows.order_by(*(f"{sign}{name}" for name in columns))[: self.size + 1])
        has_more, found = len(found) > self.size, found[: self.size][::step]
        if not found or (lookup == "gt" and not has_more):
            return []
        self.newer = self.cursor(found[0]) if lookup else ""
        self.older = self.cursor(found[-1]) if has_more else ""
        return found

    def _beyond(self, position: tuple[Any, ...], lookup: str) -> Q:
        if self.by_key:
            return Q(**{f"pk__{lookup}": position[0]})
        at, pk = position
        # The first condition lets the index start at the right row.
        tied = Q(**{f"created_at__{lookup}": at}) | Q(**{f"pk__{lookup}": pk})
        return Q(**{f"created_at__{lookup}e": at}) & tied

    def cursor(self, row: M) -> str:
        """The row's cursor, for a URL."""
        if self.by_key:
            return str(row.pk)
        at: datetime = row.created_at  # type: ignore[attr-defined]  # every model of ours but the audit log
        return f"{(at - EPOCH) // MICROSECOND}-{row.pk.hex}"

    def _decode(self, cursor: str) -> tuple[Any, ...] | None:
        """The ordering values in a cursor, or None for a malformed one."""
        first, _, last = cursor.partition("-")
        if not (
            first.isascii() and first.isdecimal() and len(first) < 20 and int(first) < MAX_CURSOR
        ):
            return None
        if self.by_key:
            return None if last else (int(first),)
        try:
            return EPOCH + int(first) * MICROSECOND, UUID(last)
        except ValueError:
            return None
