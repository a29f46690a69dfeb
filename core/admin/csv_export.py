"""Export of an admin list as CSV: the rows of the page, streamed, bounded, without formulas."""

import csv
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import Any, ClassVar

from asgiref.sync import sync_to_async
from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import BadRequest, PermissionDenied
from django.core.handlers.asgi import ASGIRequest
from django.db.models import QuerySet
from django.http import HttpRequest, StreamingHttpResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.text import capfirst
from django.views.decorators.http import require_safe

from core.csv import escape_formula

MAX_ROWS = 50_000
CHUNK_SIZE = 500


class CsvExportAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in its stubs only
    """Exports `csv_columns` (field paths such as owner__email); without any, no export."""

    csv_columns: ClassVar[tuple[str, ...]] = ()
    change_list_template = "admin/csv_change_list.html"

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Titled by the model, not "Select one to change": most lists are read-only."""
        title = {"title": capfirst(str(self.opts.verbose_name_plural))}
        return super().changelist_view(request, title | (extra_context or {}))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_safe(self.export))
        name = f"{self.opts.app_label}_{self.opts.model_name}_export"
        ours = [path("export/", view, name=name)] if self.csv_columns else []
        return [*ours, *super().get_urls()]

    def export(self, request: HttpRequest) -> StreamingHttpResponse:
        """The rows that the list's filters and search leave, in its order."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        try:
            rows = self.get_changelist_instance(request).get_queryset(request)
        except IncorrectLookupParameters as error:
            raise BadRequest("This filter does not exist.") from error
        name = f"{self.opts.model_name}-{timezone.now():%Y-%m-%d}.csv"
        return csv_response(request, csv_lines(rows, self.csv_columns), name)


class Echo:
    """A file that returns each line instead of keeping it."""

    def write(self, line: str) -> str:
        return line


def csv_lines(rows: QuerySet[Any], columns: tuple[str, ...]) -> Iterator[str]:
    """A header, a line for each row, and a note when the export stops at MAX_ROWS."""
    writer: Any = csv.writer(Echo())
    yield writer.writerow(columns)
    found = rows.values_list(*columns)[: MAX_ROWS + 1].iterator(chunk_size=CHUNK_SIZE)
    for number, row in enumerate(found):
        if number == MAX_ROWS:
            yield writer.writerow([f"Stopped after {MAX_ROWS} rows: filter the list first."])
            return
        yield writer.writerow(map(escape_formula, row))


def csv_response(request: HttpRequest, text: Iterable[str], name: str) -> StreamingHttpResponse:
    parts = chunks(iter(text))
    # Under ASGI a plain iterator would be read to its end before the first byte is sent.
    body: Any = iterate_on_request_thread(parts) if isinstance(request, ASGIRequest) else parts
    response = StreamingHttpResponse(body, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response


def chunks(text: Iterator[str]) -> Iterator[str]:
    while part := "".join(islice(text, CHUNK_SIZE)):
        yield part


async def iterate_on_request_thread(parts: Iterator[str]) -> AsyncIterator[str]:
    """Build each part on the thread that holds the request's database connection."""
    following = sync_to_async(lambda: next(parts, None), thread_sensitive=True)
    while (part := await following()) is not None:
        yield part
