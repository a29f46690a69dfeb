"""The admin site: Django's own, with the operations dashboard on its first page."""

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache

from config.admin_site.dashboard import read_dashboard

# Models by subject, in the order of the index page; the rest goes to OTHER_GROUP.
GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Evolution",
        (
            "EvolutionJob",
            "Outcome",
            "Reflection",
            "TrainingRun",
            "ProviderCircuit",
            "WorkerHeartbeat",
        ),
    ),
    (
        "Playbooks",
        ("Playbook", "ReviewItem", "Version", "Delta", "Bullet", "Vote", "Section"),
    ),
    ("Users and keys", ("User", "ApiKey", "ConnectedApp", "LlmKey", "AuditEntry")),
    ("Cost", ("UsageRecord", "PriceOverride", "CostCap", "Budget")),
    (
        "Plans and payment",
        (
            *("BillingAccount", "Plan", "QuotaPeriod"),
            *("Subscription", "Invoice", "Event", "WebhookEndpoint"),
        ),
    ),
    ("Authentication", ("UserSession", "Authenticator", "Application")),
)
OTHER_GROUP = "Other"


class AceAdminSite(AdminSite):
    site_header = site_title = "ACE Platform admin"
    index_title = "System status"
    # The index already lists every model, and change lists need the width.
    enable_nav_sidebar = False

    def get_urls(self) -> list[URLPattern | URLResolver]:
        ours = [path("operations/", self.operations, name="operations")]
        return [*ours, *super().get_urls()]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        context = {"panel": read_dashboard(), "groups": self.groups(request)}
        return super().index(request, context | (extra_context or {}))

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
        return render(request, "admin/dashboard.html", {"panel": read_dashboard()})

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """Passwords change in the user settings only, which check them and send the e-mail."""
        return redirect("accounts:settings")

    def groups(self, request: HttpRequest) -> list[dict[str, Any]]:
        """The models by subject, in the order of GROUPS."""
        models = [model for app in self.get_app_list(request) for model in app["models"]]
        named = {model["object_name"]: model for model in models}
        found = []
        for name, members in GROUPS:
            found.append({"name": name, "models": [named.pop(m) for m in members if m in named]})
        found.append({"name": OTHER_GROUP, "models": list(named.values())})
        return [group for group in found if group["models"]]
