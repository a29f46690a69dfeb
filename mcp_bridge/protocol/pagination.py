"""Cursor pagination: an opaque, signed cursor that is valid for one list and one user."""

from datetime import datetime
from typing import TypeVar

from django.core import signing
from django.db.models import Model, Q, QuerySet

from core.errors import Invalid
from core.security.scopes import Principal

M = TypeVar("M", bound=Model)
MAX_CURSOR_LENGTH = 1_000


def paginate(
    rows: QuerySet[M], *, by: Principal, of: str, newest: str, limit: int, cursor: str
) -> tuple[list[M], str | None]:
    """The next `limit` rows after `cursor`, by the column `newest` descending; the next cursor.

    `of` identifies the list and its filters. Raises Invalid for a cursor of another list or user.
    """
    salt = f"mcp.page:{by.user.pk}:{of}"
    if cursor:
        try:
            if len(cursor) > MAX_CURSOR_LENGTH or not cursor.isascii():
                raise signing.BadSignature
            value, pk = signing.loads(cursor, salt=salt)
        except signing.BadSignature:
            message = "This cursor is not one of this list. Start without one."
            raise Invalid.field("cursor", message) from None
        rows = rows.filter(Q(**{f"{newest}__lt": value}) | Q(**{newest: value, "pk__lt": pk}))
    found = list(rows.order_by(f"-{newest}", "-pk")[: limit + 1])
    if len(found) <= limit:
        return found, None
    value = getattr(found[limit - 1], newest)
    value = value.isoformat() if isinstance(value, datetime) else value
    return found[:limit], signing.dumps([value, str(found[limit - 1].pk)], salt=salt)
