"""Moves what was made now to the day on which it is said to have happened."""

from datetime import datetime, timedelta

from django.db.models import DateTimeField, F

from accounts.belongings import rows_of
from accounts.models import AuditEntry, User


def move_to(user: User, *, made_since: datetime, back: timedelta) -> None:
    """Every time of the user's rows since `made_since` lies `back` earlier.

    The audit log keeps the real time: nobody may change it.
    """
    for rows in rows_of(user):
        if rows.model is AuditEntry:
            continue
        for field in rows.model._meta.concrete_fields:
            if isinstance(field, DateTimeField):
                found = rows.filter(**{f"{field.name}__gte": made_since})
                found.order_by().update(**{field.name: F(field.name) - back})
