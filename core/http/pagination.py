"""Lists that grow without end, newest first: cut by a row's place, so that no page counts rows.

A numbered page reads every row before it, and says how many there are by reading them all.
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
"""In microseconds the year 2255; a mark beyond it, or beyond a key's range, is none of ours."""


class KeysetPage(Generic[M]):
    """One page of `rows`: the newest, or those `before` or `after` the row that the query marks.

    `newer` and `older` are the marks for the pages beside it, empty where there is none. By
    (created_at, pk), or by pk alone where it counts up; both want an index in that order.
    """

    def __init__(self, rows: QuerySet[M], query: Mapping[str, Any], *, size: int) -> None:
        self.rows, self.size = rows, size
        self.by_key = isinstance(rows.model._meta.pk, AutoField)
        self.newer = self.older = ""
        self.found = self._before(query.get("before", "")) or self._after(query.get("after", ""))
        if not self.found:
            self.found = self._first()

    def __iter__(self) -> Iterator[M]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    @property
    def is_all(self) -> bool:
        """Whether the page has every row that there is."""
        return not (self.newer or self.older)

    def _first(self) -> list[M]:
        found = list(self.rows.order_by(*self._order())[: self.size + 1])
        self.older = self.mark(found[self.size - 1]) if len(found) > self.size else ""
        return found[: self.size]

    def _before(self, mark: str) -> list[M]:
        """The rows next to the marked one, older than it."""
        place = self._place(mark)
        if place is None:
            return []
        beyond = self.rows.filter(self._beyond(place, "lt"))
        found = list(beyond.order_by(*self._order())[: self.size + 1])
        self.newer = self.mark(found[0]) if found else ""
        self.older = self.mark(found[self.size - 1]) if len(found) > self.size else ""
        return found[: self.size]

    def _after(self, mark: str) -> list[M]:
        """The rows next to the marked one, newer than it; none when the first page has them."""
        place = self._place(mark)
        if place is None:
            return []
        beyond = self.rows.filter(self._beyond(place, "gt"))
        nearest = list(beyond.order_by(*self._order(""))[: self.size + 1])
        if len(nearest) <= self.size:
            return []
        found = nearest[: self.size][::-1]
        self.newer, self.older = self.mark(found[0]), self.mark(found[-1])
        return found

    def _order(self, sign: str = "-") -> list[str]:
        return [f"{sign}{name}" for name in (["pk"] if self.by_key else ["created_at", "pk"])]

    def _beyond(self, place: tuple[Any, ...], way: str) -> Q:
        if self.by_key:
            return Q(**{f"pk__{way}": place[0]})
        at, pk = place
        # The first condition is what an index can begin at.
        tied = Q(**{f"created_at__{way}": at}) | Q(**{f"pk__{way}": pk})
        return Q(**{f"created_at__{way}e": at}) & tied

    def mark(self, row: M) -> str:
        """The row's place, for an address."""
        if self.by_key:
            return str(row.pk)
        at: datetime = row.created_at  # type: ignore[attr-defined]  # every row of ours but the log's
        return f"{(at - EPOCH) // MICROSECOND}-{row.pk.hex}"

    def _place(self, mark: str) -> tuple[Any, ...] | None:
        """What a mark says, or None for one that we never gave."""
        first, _, last = mark.partition("-")
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
