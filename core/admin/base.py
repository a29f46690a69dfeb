"""Base classes and helpers of the admin: read-only lists, actions that call a service."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.contrib import admin, messages
from django.db.models import Model, QuerySet
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import urlencode

from core.admin.csv_export import CsvExportAdmin
from core.errors import AceError
from core.security.scopes import Principal

M = TypeVar("M", bound=Model)


class ReadOnlyAdmin(CsvExportAdmin):
    """Rows that the platform writes: staff view, search, export and use actions only."""

    show_full_result_count = False
    list_per_page = 50

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        # Actions check this without a row; the form of a row is never writable.
        return obj is None and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def apply_action(
    request: HttpRequest, rows: QuerySet[M], act: Callable[[M], object], *, one: str, many: str
) -> None:
    """Call a service for each row; a message counts the changes, warnings name the refusals.

    `one` and `many` name the result: "key revoked", "keys revoked".
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
    """An admin action that calls a service for each selected row that `rows` lets through."""

    @admin.action(description=description, permissions=["change"])
    def action(_admin: Any, request: HttpRequest, selected: QuerySet[Any]) -> None:
        by = request_principal(request)
        apply_action(request, rows(selected), lambda row: act(row, by), one=one, many=many)

    return action


def request_principal(request: HttpRequest) -> Principal:
    """The principal of a request to the admin, which admits only users."""
    return Principal.of(request.user)  # type: ignore[arg-type]  # never anonymous here


def first_line(text: str) -> str:
    """The first line of a text, cut to 70 characters, for a cell of a list."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= 70 else f"{line[:69]}…"


def confirm_page(
    request: HttpRequest,
    page: "admin.ModelAdmin[M]",
    rows: QuerySet[M],
    *,
    form: Form | None = None,
    **context: Any,
) -> HttpResponse:
    """Ask before an action; context: `title`, `action`, `verb`, `consequence`, maybe `lines`."""
    context |= page.admin_site.each_context(request) | {"opts": page.opts, "rows": rows}
    status = 400 if form is not None and form.errors else 200
    template = "admin/confirm_action.html"
    return render(request, template, context | {"form": form}, status=status)


def changelist_url(model: str, **query: object) -> str:
    """The URL of a filtered list: `changelist_url("evolution_outcome", state="pending")`."""
    address = reverse(f"admin:{model}_changelist")
    if not query:
        return address
    return f"{address}?{urlencode({name: str(value) for name, value in query.items()})}"
