"""Rows that the platform writes: staff look, search, export, and act through actions only."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from core.admin.csv_export import CsvExportAdmin
from core.errors import AceError
from core.security.scopes import Principal

M = TypeVar("M", bound=Model)


class ReadOnlyAdmin(CsvExportAdmin):
    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        # Without a row it is what actions ask for; the form of a row is never writable.
        return obj is None and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def apply_action(
    request: HttpRequest, rows: QuerySet[M], act: Callable[[M], object], *, one: str, many: str
) -> None:
    """Call a service for each row; say how many changed, and why the others did not.

    `one` and `many` say what became of them: "key revoked", "keys revoked".
    """
    changed = 0
    for row in rows:
        try:
            act(row)
            changed += 1
        except AceError as error:
            messages.warning(request, f"{row}: {error.message}")
    level = messages.SUCCESS if changed else messages.WARNING
    messages.add_message(request, level, f"{changed} {one if changed == 1 else many}.")


def row_action(
    description: str,
    act: Callable[[Any, Principal], object],
    *,
    one: str,
    many: str,
    rows: Callable[[QuerySet[Any]], QuerySet[Any]] = lambda rows: rows,
) -> Callable[[Any, HttpRequest, QuerySet[Any]], None]:
    """An admin action that calls a service for each chosen row; `rows` says which of them."""

    @admin.action(description=description, permissions=["change"])
    def action(_admin: Any, request: HttpRequest, chosen: QuerySet[Any]) -> None:
        who = request_principal(request)
        apply_action(request, rows(chosen), lambda row: act(row, who), one=one, many=many)

    return action


def request_principal(request: HttpRequest) -> Principal:
    """Who acts: the admin lets only users in."""
    return Principal.of(request.user)  # type: ignore[arg-type]  # not anonymous, as said above


def first_line(text: str) -> str:
    """The first line's beginning, for a cell of a list."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= 70 else f"{line[:69]}…"
