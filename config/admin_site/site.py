"""The admin site: Django's own, with the operations dashboard on its first page."""

import re
import tomllib
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any
from uuid import UUID

from django.apps import apps
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from accounts.models import User
from accounts.services.personal_data import export_account
from accounts.web.settings_views import account_file
from config.admin_site.customers import read_customer
from config.admin_site.dashboard import read_dashboard
from config.admin_site.search import search_rows
from core.admin import may, request_principal
from core.http.reauthentication import ask_to_reauthenticate

_FILE = Path(__file__).with_name("index_groups.toml")
GROUPS: dict[str, list[str]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))
OTHER_GROUP = "Other"


LINK = re.compile(r'<a\b([^>]*) href="/admin/([a-z0-9_]+)/([a-z0-9_]+)/[^"]*"[^>]*>(.*?)</a>', re.S)
# Days of the chart on the first page.
SPANS = {1: "24 hours", 7: "7 days", 30: "30 days"}


class AceAdminSite(AdminSite):
    site_header = site_title = "ACE Platform admin"
    index_title = "System status"
    # The index already lists every model, and change lists need the width.
    enable_nav_sidebar = False

    def get_urls(self) -> list[URLPattern | URLResolver]:
        ours = [
            path("operations/", self.operations, name="operations"),
            path("search/", self.admin_view(require_POST(self.search)), name="search"),
            path("customers/<uuid:pk>/", self.admin_view(self.customer), name="customer"),
            path(
                "customers/<uuid:pk>/export/",
                self.admin_view(require_POST(self.export_customer)),
                name="export_customer",
            ),
        ]
        return [*ours, *super().get_urls()]

    def admin_view(self, view: Callable[..., Any], cacheable: bool = False) -> Any:
        """Every change asks for the password again after some minutes: forms as well as actions."""
        changes_nothing = getattr(view, "__wrapped__", view) in (self.search, self.logout)

        @wraps(view)
        def asked(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            is_change = request.method == "POST" and not changes_nothing
            again = ask_to_reauthenticate(request) if is_change else None
            return again or self._without_closed_links(request, view(request, *args, **kwargs))

        return super().admin_view(asked, cacheable)

    def _without_closed_links(self, request: HttpRequest, response: Any) -> Any:
        """The page with the text only of links that would answer 403.

        Here and not where each is written: Django links foreign keys whoever reads.
        """

        def strip(page: HttpResponse) -> None:
            if page.get("Content-Type", "").startswith("text/html"):
                page.content = LINK.sub(keep, page.content.decode()).encode()

        def keep(link: re.Match[str]) -> str:
            attributes, app, model, text = link.groups()
            try:
                rows = self._registry.get(apps.get_model(app, model))
            except LookupError:  # a page of the site
                return link[0]
            shown = rows is not None and rows.has_view_permission(request)
            return link[0] if shown else f"<span{attributes}>{text}</span>"

        if isinstance(response, TemplateResponse):
            response.add_post_render_callback(strip)
        elif isinstance(response, HttpResponse):
            strip(response)
        return response

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        context = self._panel(request) | {"groups": self.groups(request)}
        return super().index(request, context | (extra_context or {}))

    def _panel(self, request: HttpRequest) -> dict[str, Any]:
        days = next((days for days in SPANS if request.GET.get("days") == str(days)), 1)
        panel = read_dashboard(days)
        return {"panel": panel, "figures": panel.figures, "spans": SPANS.items()}

    def operations(self, request: HttpRequest) -> HttpResponse:
        """The dashboard alone, polled by the index page."""
        if not self.has_permission(request):
            # htmx must not swap the login page into the fragment.
            back = f"{reverse('accounts:log_in')}?{urlencode({'next': reverse('admin:index')})}"
            if not request.headers.get("HX-Request"):
                return redirect(back)
            return HttpResponse(status=204, headers={"HX-Redirect": back})
        if not request.headers.get("HX-Request"):
            return redirect("admin:index")
        return never_cache(self._dashboard)(request)

    def _dashboard(self, request: HttpRequest) -> HttpResponse:
        page = render(request, "admin/dashboard.html", self._panel(request))
        shown: HttpResponse = self._without_closed_links(request, page)
        return shown

    def search(self, request: HttpRequest) -> HttpResponse:
        """Rows by e-mail, key, id or name. A form, because a pasted key must not be in a URL."""
        query = request.POST.get("q", "")
        context = {"title": "Search", "query": query, "hits": search_rows(request, query)}
        return render(request, "admin/search.html", self.each_context(request) | context)

    def customer(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        """One account in one view: plan, spending, keys, playbooks, last jobs, limits, audit."""
        user = self._customer(request, pk)
        actions = self._registry[User].row_actions(request, user)  # type: ignore[attr-defined]  # of BaseAdmin
        context = {"customer": read_customer(request, user), "row_actions": actions}
        context |= {"title": user.email, "opts": User._meta, "original": user}
        return render(request, "admin/customer.html", self.each_context(request) | context)

    def export_customer(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        """The file that the person would get in their settings; the audit log says who took it."""
        user = self._customer(request, pk)
        if not may(request, "change", User):
            raise PermissionDenied
        return account_file(export_account(user=user, by=request_principal(request)))

    def _customer(self, request: HttpRequest, pk: UUID) -> User:
        if not may(request, "view", User):
            raise PermissionDenied
        return get_object_or_404(User, pk=pk)

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Passwords change in the user settings only, which check them and send the e-mail."""
        return redirect("accounts:change_password")

    def groups(self, request: HttpRequest) -> list[dict[str, Any]]:
        """The models by subject, in the order of GROUPS."""
        models = [model for app in self.get_app_list(request) for model in app["models"]]
        named = {model["object_name"]: model for model in models}
        found = []
        for name, members in GROUPS.items():
            found.append({"name": name, "models": [named.pop(m) for m in members if m in named]})
        found.append({"name": OTHER_GROUP, "models": list(named.values())})
        return [group for group in found if group["models"]]
