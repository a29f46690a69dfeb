"""Base classes and helpers of the admin: CSV export, read-only lists, confirmed actions."""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.auth import get_permission_codename, get_user_model
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import Model, QuerySet
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.text import capfirst
from django.views.decorators.http import require_safe

from core.csv import write_csv
from core.errors import AceError
from core.security.redaction import SECRET_FIELDS
from core.security.scopes import Principal
from core.sql.querysets import MAX_SEARCH_CHARS, MAX_SEARCH_WORDS, is_uuid

M = TypeVar("M", bound=Model)
MAX_ROWS = 50_000


class BaseAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """The base of every model's page, ours and of installed apps: what it hides stays hidden."""

    view_on_site = False  # its owner's page answers staff 404, unless they view as them
    row_page = ""  # the page of a row to return to after an action; by default its form

    def hidden_fields(self) -> set[str]:
        """The fields that this page does not show, and those that are secret wherever they are."""
        names = {field.name for field in self.opts.get_fields()}
        hidden = set(self.exclude or ()) | (names & SECRET_FIELDS)
        if self.fields or self.fieldsets:
            shown = flatten_fieldsets(self.fieldsets or [(None, {"fields": self.fields or ()})])
            hidden |= {field.name for field in self.opts.concrete_fields} - {*shown, "id"}
        columns = (*self.list_display, *self.list_filter, *getattr(self, "csv_columns", ()))
        return (hidden - set(map(str, columns))) | (names & SECRET_FIELDS)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Django allows every local field: `?session_key__startswith=` would read a hidden one."""
        first = lookup.partition("__")[0]
        return first not in self.hidden_fields() and super().lookup_allowed(lookup, value, request)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """The row's page, with the actions of the list that apply to this row as buttons."""
        row = self.get_object(request, object_id) if object_id else None
        actions = {"row_actions": self.row_actions(request, row) if row else []}
        return super().changeform_view(
            request, object_id, form_url, actions | (extra_context or {})
        )

    def row_actions(self, request: HttpRequest, row: Model) -> list[tuple[str, str]]:
        """Name and description of each action of the list that is offered for this row."""
        found = self.model._default_manager.filter(pk=row.pk)
        actions: dict[str, Any] = self.get_actions(request)
        return [
            (name, str(description))
            for name, (act, _, description) in actions.items()
            if name != "delete_selected" and getattr(act, "offered", QuerySet.all)(found).exists()
        ]

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:  # type: ignore[override]  # the stubs' third argument is not Django's
        """After an action from a row's page, that page again."""
        response = super().response_action(request, queryset)
        back = request.POST.get("row", "")
        is_done = (
            isinstance(response, HttpResponseRedirect) and response.url == request.get_full_path()
        )
        if is_done and back and queryset.filter(pk=back).exists():
            form = f"admin:{self.opts.label_lower.replace('.', '_')}_change"
            return redirect(self.row_page or form, back)
        return response

    def get_list_filter(self, request: HttpRequest) -> Any:
        """The filters of the list, and the exact one by owner where rows have one."""
        path = getattr(self.model._default_manager.all(), "owner_path", None)
        own = (OwnerFilter.by(path),) if path else ()
        return (*own, *super().get_list_filter(request))

    def has_delete_rows_permission(self, request: HttpRequest) -> bool:
        """For actions that delete by a service, where the form for deleting is off."""
        return may(request, "delete", self.model)


def may(request: HttpRequest, verb: str, model: type[Model]) -> bool:
    """True when the member of staff has Django's permission, such as change, on the model."""
    codename = get_permission_codename(verb, model._meta)
    return request.user.has_perm(f"{model._meta.app_label}.{codename}")


class CsvExportAdmin(BaseAdmin):
    """Exports `csv_columns` (field paths such as owner__email); without any, no export."""

    csv_columns: ClassVar[tuple[str, ...]] = ()
    change_list_template = "admin/csv_change_list.html"

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Titled by the model, not "Select one to change": most lists are read-only."""
        title = {"title": capfirst(str(self.opts.verbose_name_plural))}
        return super().changelist_view(request, title | (extra_context or {}))

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Searches for as many words as other lists do: SQLite refuses more."""
        words = search_term[:MAX_SEARCH_CHARS].split()[:MAX_SEARCH_WORDS]
        return super().get_search_results(request, queryset, " ".join(words))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_safe(self.export))
        name = f"{self.opts.app_label}_{self.opts.model_name}_export"
        ours = [path("export/", view, name=name)] if self.csv_columns else []
        return [*ours, *super().get_urls()]

    def export(self, request: HttpRequest) -> HttpResponse:
        """The rows that the list's filters and search leave, in its order, at most MAX_ROWS."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            rows = self.get_changelist_instance(request).get_queryset(request)
        except IncorrectLookupParameters as error:
            raise BadRequest("This filter does not exist.") from error
        found = list(rows.values_list(*self.csv_columns)[: MAX_ROWS + 1])
        if len(found) > MAX_ROWS:
            found[MAX_ROWS] = (f"Stopped after {MAX_ROWS} rows: filter the list first.",)
        name = f"{self.opts.model_name}-{timezone.now():%Y-%m-%d}.csv"
        headers = {
            "Content-Disposition": f'attachment; filename="{name}"',
            "Cache-Control": "no-store",
        }
        text = write_csv(self.csv_columns, found)
        return HttpResponse(text, content_type="text/csv; charset=utf-8", headers=headers)


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


class OwnerFilter(admin.SimpleListFilter):
    """`?owner=<id>`: exactly one user's rows; the e-mail in a search would match others' too."""

    title = "owner"
    parameter_name = "owner"
    path: ClassVar[str]

    @classmethod
    def by(cls, path: str) -> "type[OwnerFilter]":
        """The filter of a list whose rows name their owner at `path`, such as playbook__owner."""
        return type("OwnerFilter", (cls,), {"path": path})

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Only the chosen owner: a list of all users would be endless."""
        chosen = request.GET.get(self.parameter_name, "")
        owner = get_user_model().objects.filter(pk=chosen).first() if is_uuid(chosen) else None
        return [(chosen, str(owner or "nobody"))] if chosen else []

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value() or ""
        if not value:
            return rows
        return rows.filter(**{self.path: value}) if is_uuid(value) else rows.none()


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
    permission: str = "change",
    rows: Callable[[QuerySet[Any]], QuerySet[Any]] = lambda rows: rows,
    offered: Callable[[Any], QuerySet[Any]] | None = None,
) -> Callable[[Any, HttpRequest, QuerySet[Any]], None]:
    """An admin action that calls a service for each selected row that `rows` lets through.

    `permission` is what the service does: change, or one that the page defines by
    `has_<permission>_permission`, such as delete_rows. On a row's page the action is a button if
    `offered`, or else `rows`, lets the row through.
    """

    @admin.action(description=description, permissions=[permission])
    def action(_admin: Any, request: HttpRequest, selected: QuerySet[Any]) -> None:
        by = request_principal(request)
        apply_action(request, rows(selected), lambda row: act(row, by), one=one, many=many)

    action.offered = offered or rows  # type: ignore[attr-defined]  # like Django's allowed_permissions
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
