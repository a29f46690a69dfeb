"""Everything that belongs to one person, found by the database's own rule: what goes with them.

A row belongs to a user when deleting the user would delete it. Export and deletion so speak of the
same rows, and an app above this one needs no word here for its tables.
"""

from collections.abc import Iterator
from typing import Any

from django.db.models import (
    CASCADE,
    BinaryField,
    ForeignKey,
    ForeignObjectRel,
    Model,
    Q,
    QuerySet,
)

from accounts.models import AuditEntry, User

Paths = dict[type[Model], list[str]]
# Nobody has a use for these but an attacker.
SECRET = frozenset({"password", "digest", "sealed", "session_key", "request_hash", "token", "data"})
SECRET |= frozenset({"token_checksum", "client_secret", "code_challenge", "code", "body"})


def rows_of(user: User) -> Iterator[QuerySet[Any]]:
    """One queryset for each table with rows of the user, the user's own row first."""
    for model, paths in _paths().items():
        found = Q()
        for path in paths:
            found |= Q(**{path: user.pk})
        rows = model._base_manager.filter(found).order_by("pk")
        # By key, not by join: a row that two paths reach comes once.
        yield model._base_manager.filter(pk__in=rows.values("pk")).order_by("pk")
    yield AuditEntry.objects.for_user(user).order_by("pk")


def as_json(row: Model) -> dict[str, Any]:
    """The columns of a row, without secrets."""
    return {
        field.attname: getattr(row, field.attname)
        for field in row._meta.concrete_fields
        if field.name not in SECRET and not isinstance(field, BinaryField)
    }


def _paths() -> Paths:
    """For each model, the chains of foreign keys that lead to the user."""
    found: Paths = {User: ["pk"]}
    _walk(User, "", (User,), found)
    return found


def _walk(model: type[Model], path: str, seen: tuple[type[Model], ...], found: Paths) -> None:
    for relation in model._meta.get_fields(include_hidden=True):
        if not isinstance(relation, ForeignObjectRel) or relation.on_delete is not CASCADE:
            continue
        key, child = relation.field, relation.related_model
        if not isinstance(key, ForeignKey) or child in seen:
            continue
        here = f"{key.name}__{path}" if path else key.name
        found.setdefault(child, []).append(here)
        _walk(child, here, (*seen, child), found)
