"""Read-only visits: staff in a user's pages, audited, and anybody in the demo account."""

import re
import time
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model, login
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

from accounts.models import User
from config.demo.builder import demo_user
from config.web.middleware import error_response
from core.audit import record
from core.errors import AceError, Conflict, Forbidden
from core.security.scopes import Principal

SESSION_KEY, SECONDS = "view_as", 30 * 60
# Not settings, keys or consent pages: nothing there helps to see what a playbook does.
NAMESPACES = frozenset(("playbooks", "evolution", "billing"))
WRITES = re.compile(r"\s*(INSERT|UPDATE|DELETE)\b", re.IGNORECASE)
READ_ONLY = "You’re viewing this account as {email}, read-only. Stop viewing first."
DEMO_KEY = "demo"
# Not the demo account's settings, sessions or activity: they would show its other visitors.
DEMO_NAMESPACES = NAMESPACES | {"mcp_bridge"}
DEMO_PAGES = frozenset(
    ("home", "favicon", "onboarding", "command_palette", "accounts:keys", "api_docs", "schema")
    + ("docs_index", "docs_search", "docs_page", "docs_image", "docs_source", "llms", "llms_full")
)
DEMO_WRITES = frozenset(("theme", "accounts:log_out"))
DEMO_READ_ONLY = "The demo is read-only. Leave it and register to get your own account."


def start_viewing(*, request: HttpRequest, user: User, by: Principal) -> None:
    """Show the user's pages to this browser. Raises Conflict for staff and disabled accounts."""
    if user.is_staff or user.is_superuser or not user.is_active:
        raise Conflict(
            "Only active accounts without staff rights can be viewed.", code="not_viewable"
        )
    record(action="view_as_user", by=by, subject=user, owner=user)
    request.session[SESSION_KEY] = [str(user.pk), time.time() + SECONDS]


def stop_viewing(request: HttpRequest) -> str | None:
    """End it; the id of the user whose pages were shown."""
    found = request.session.pop(SESSION_KEY, None)
    return str(found[0]) if found else None


def visit_demo(request: HttpRequest) -> bool:
    """Log this browser in to the demo account, read-only; False where there is none to visit."""
    user = demo_user() if settings.DEMO_LOGIN else None
    if user is None:
        return False
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    request.session[DEMO_KEY] = True
    return True


class ViewAsMiddleware(MiddlewareMixin):
    """Runs views of NAMESPACES with the viewed user, without any write to the database.

    Of a visitor of the demo, all views. The last middleware, because it calls the view itself.
    """

    def process_view(
        self, request: HttpRequest, view: Any, args: Any, kwargs: Any
    ) -> HttpResponseBase | None:
        match = request.resolver_match
        if match is None or match.namespaces[:1] == ["api"]:
            return None
        # Also after DEMO_LOGIN was turned off: older sessions stay read-only.
        has_session = settings.SESSION_COOKIE_NAME in request.COOKIES
        is_demo = has_session and request.session.get(DEMO_KEY, False)
        is_viewable = bool(NAMESPACES.intersection(match.namespaces))
        viewed = viewed_user(request) if is_viewable and not is_demo else None
        if (viewed is None and not is_demo) or (is_demo and match.view_name in DEMO_WRITES):
            return None
        try:
            is_read = request.method in {"GET", "HEAD"}
            if viewed is None:
                request.is_demo = True  # type: ignore[attr-defined]  # as below
                shown = DEMO_NAMESPACES.intersection(match.namespaces)
                if not is_read or not (shown or match.view_name in DEMO_PAGES):
                    raise Forbidden(DEMO_READ_ONLY, code="read_only")
            else:
                if not is_read:
                    raise Forbidden(READ_ONLY.format(email=viewed.email), code="read_only")
                request.viewed_as, request.user = viewed, viewed  # type: ignore[attr-defined]  # Django's documented way to extend a request
            with connection.execute_wrapper(_refuse_writes):
                response: HttpResponse = view(request, *args, **kwargs)
                return response
        except AceError as error:
            return error_response(request, error)


def viewed_user(request: HttpRequest) -> User | None:
    """Whose pages this member of staff is viewing, until the time is over."""
    staff = request.user
    found = request.session.get(SESSION_KEY) if staff.is_authenticated and staff.is_staff else None
    if found is None:
        return None
    pk, until = found
    if time.time() > until:
        stop_viewing(request)
        return None
    user: User | None = (
        get_user_model().objects.filter(pk=pk, is_active=True, is_staff=False).first()
    )
    return user


def _refuse_writes(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    if WRITES.match(sql):
        raise Forbidden("This page makes changes, so it can’t be viewed.", code="read_only")
    return execute(sql, params, many, context)
