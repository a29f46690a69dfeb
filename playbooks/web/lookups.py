"""What the views of playbooks share: fetching the playbook, and reading the query string."""

from functools import partial
from urllib.parse import urlsplit

from django.http import HttpRequest, QueryDict
from django.urls import reverse

from core.http.requests import UserRequest
from core.security.scopes import Principal
from core.sql.querysets import CompiledLookup
from playbooks.models import Playbook, PlaybookQuerySet


def _rows(by: Principal, *, include_starters: bool) -> PlaybookQuerySet:
    rows = Playbook.objects.for_user(by, include_starters=include_starters)
    return rows.select_related("current_version").with_counts()


OWN_PLAYBOOK = CompiledLookup(partial(_rows, include_starters=False))
READABLE_PLAYBOOK = CompiledLookup(partial(_rows, include_starters=True))


def fetch_own_playbook(request: UserRequest, pk: str) -> Playbook:
    """The person's own playbook with its counts; a starter or a stranger's is NotFound."""
    return OWN_PLAYBOOK.fetch(Principal.of(request.user), pk)


def fetch_readable_playbook(request: UserRequest, pk: str) -> Playbook:
    """The same, starters included."""
    return READABLE_PLAYBOOK.fetch(Principal.of(request.user), pk)


def undo_url(playbook: Playbook, number: int) -> str:
    """The URL that undoes a version."""
    return reverse("playbooks:undo", args=[playbook.pk, number])


def page_query(request: HttpRequest) -> QueryDict:
    """The query string of the page; for a POST from htmx, that of the page it came from."""
    if request.method == "GET":
        return request.GET
    return QueryDict(urlsplit(request.headers.get("HX-Current-URL", "")).query)


def search_text(query: QueryDict) -> str:
    """The search text of `?q=`."""
    return query.get("q", "").replace("\x00", "").strip()[:120]
