"""Cursor pagination: an opaque, signed cursor that is valid for one list and one user."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.core import signing
from django.db.models import Model, Q, QuerySet

from core.errors import Invalid
from core.security.scopes import Principal

M = TypeVar("M", bound=Model)
MAX_CURSOR_LENGTH = 1_000


@dataclass(frozen=True)
class Page(Generic[M]):
    """The rows of one page, and the cursor of the next one or None."""

    rows: list[M]
    next_cursor: str | None


def paginate(
    rows: QuerySet[M], *, by: Principal, of: str, newest: str, limit: int, cursor: str
) -> Page[M]:
    """The next `limit` rows after `cursor`, in descending order of the column `newest`.

    `of` identifies the list and its filters. Raises Invalid for a cursor of another list or user.
    """
    salt = f"mcp.page:{by.user.pk}:{of}"
    if cursor:
        rows = rows.filter(_after(newest, _decode_cursor(cursor, salt)))
    found = list(rows.order_by(f"-{newest}", "-pk")[: limit + 1])
    if len(found) <= limit:
        return Page(found, None)
    last = found[limit - 1]
    value = getattr(last, newest)
    position = [value.isoformat() if isinstance(value, datetime) else value, str(last.pk)]
    return Page(found[:limit], signing.dumps(position, salt=salt))


def _after(newest: str, position: list[Any]) -> Q:
    value, pk = position
    return Q(**{f"{newest}__lt": value}) | Q(**{newest: value, "pk__lt": pk})


def _decode_cursor(cursor: str, salt: str) -> list[Any]:
    try:
        if len(cursor) > MAX_CURSOR_LENGTH or not cursor.isascii():
            raise signing.BadSignature
        position: list[Any] = signing.loads(cursor, salt=salt)
    except signing.BadSignature:
        message = "This cursor is not one of this list. Start without one."
        raise Invalid.field("cursor", message) from None
    return position
