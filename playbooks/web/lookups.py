"""What the views of playbooks share: fetching the playbook, and reading the query string."""

from typing import Any
from urllib.parse import urlsplit

from django.http import HttpRequest, QueryDict
from django.urls import reverse

from core.http.requests import UserRequest
from playbooks.models import Playbook


def fetch_own_playbook(request: UserRequest, pk: str) -> Playbook:
    """The person's own playbook with its counts; a starter or a stranger's is NotFound."""
    return fetch_readable_playbook(request, pk, include_starters=False)


def fetch_readable_playbook(
    request: UserRequest, pk: str, *, include_starters: bool = True
) -> Playbook:
    """The same, starters included."""
    rows: Any = Playbook.objects.for_user(request.user, include_starters=include_starters)
    found: Playbook = rows.select_related("current_version").with_counts().fetch(pk)
    return found


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
