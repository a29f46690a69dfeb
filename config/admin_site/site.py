"""The admin site: Django's own, with the operations panel on its first page."""

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache

from config.admin_site.dashboard import read_dashboard

# What a model's page is about, and where it stands; what is not named comes last.
GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "The loop",
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
    ("People and keys", ("User", "ApiKey", "ConnectedApp", "LlmKey", "AuditEntry")),
    ("Cost", ("UsageRecord", "PriceOverride", "CostCap", "Budget")),
    (
        "Plans and payment",
        (
            *("BillingAccount", "Plan", "QuotaPeriod", "QuotaHold", "QuotaNotice"),
            *("Subscription", "Invoice", "Event", "WebhookEndpoint"),
        ),
    ),
    ("Signing in", ("UserSession", "Authenticator", "Application")),
)
OTHER_GROUP = "Other"


class AceAdminSite(AdminSite):
    site_header = site_title = "ACE Platform: staff"
    index_title = "What is wrong today?"
    # The first page has every list, and lists need its width.
    enable_nav_sidebar = False

    def get_urls(self) -> list[URLPattern | URLResolver]:
        ours = [path("operations/", self.operations, name="operations")]
        return [*ours, *super().get_urls()]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        context = {"panel": read_dashboard(), "groups": self.groups(request)}
        return super().index(request, context | (extra_context or {}))

    def operations(self, request: HttpRequest) -> HttpResponse:
        """The panel alone, for the page that asks for it again and again."""
        if not self.has_permission(request):
            # A fragment must not be swapped for the page that asks for a password.
            back = f"{reverse('accounts:log_in')}?{urlencode({'next': reverse('admin:index')})}"
            if not request.headers.get("HX-Request"):
                return redirect(back)
            return HttpResponse(status=204, headers={"HX-Redirect": back})
        if not request.headers.get("HX-Request"):
            return redirect("admin:index")
        return never_cache(self._panel)(request)

    def _panel(self, request: HttpRequest) -> HttpResponse:
        return render(request, "admin/dashboard.html", {"panel": read_dashboard()})

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        """One place to change a password, with its checks and its letter: the settings."""
        return redirect("accounts:settings")

    def groups(self, request: HttpRequest) -> list[dict[str, Any]]:
        """The models by what they are about, in the order in which staff needs them."""
        models = [model for app in self.get_app_list(request) for model in app["models"]]
        named = {model["object_name"]: model for model in models}
        found = []
        for name, members in GROUPS:
            found.append({"name": name, "models": [named.pop(m) for m in members if m in named]})
        found.append({"name": OTHER_GROUP, "models": list(named.values())})
        return [group for group in found if group["models"]]
