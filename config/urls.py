"""The table of doors: pages at the root, REST under /api/v1, staff under /admin.

/mcp is mounted beside Django in config/asgi.py.
"""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView

import accounts.oauth.urls
import accounts.urls
import billing.urls
import evolution.urls
import mcp_bridge.urls
import playbooks.urls
from config import api as rest
from config import theme, views
from config.handbook import views as handbook
from config.reference import reference

handler400 = views.bad_request
handler403 = views.permission_denied
handler404 = views.page_not_found
handler500 = views.server_error
pages = [
    path("", views.home, name="home"),
    path("favicon.ico", views.favicon, name="favicon"),
    path("healthz", views.healthz, name="healthz"),
    path("readyz", views.readyz, name="readyz"),
    path("metrics", views.metrics, name="metrics"),
    path("start", views.start, name="start"),
    path("start/dismiss", views.dismiss_start, name="dismiss_start"),
    path("theme", theme.choose, name="theme"),
    path("docs", handbook.first, name="handbook"),
    path("docs/<path:slug>.md", handbook.source, name="handbook_source"),
    path("docs/<slug:name>.svg", handbook.picture, name="handbook_picture"),
    path("docs/<path:slug>", handbook.page, name="handbook_page"),
    path("llms.txt", handbook.llms, name="llms"),
    path("llms-full.txt", handbook.llms_full, name="llms_full"),
    path("", include((accounts.urls.pages, "accounts"))),
    *accounts.urls.second_factor,
    path("", include(accounts.oauth.urls)),
    path("", include((billing.urls.pages, "billing"))),
    path("", include((playbooks.urls.pages, "playbooks"))),
    path("", include((evolution.urls.pages, "evolution"))),
    path("", include((mcp_bridge.urls.pages, "mcp_bridge"))),
]
api: list[URLPattern | URLResolver] = [
    path("", include((accounts.urls.api, "accounts"))),
    path("", include((billing.urls.api, "billing"))),
    path("", include((playbooks.urls.api, "playbooks"))),
    path("", include((evolution.urls.api, "evolution"))),
    path("<path:rest>", rest.no_such_route),
]
urlpatterns = [
    *pages,
    path("api/v1/", include((api, "api"))),
    path("api/schema", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs", reference, name="docs"),
    # Before the admin's own: staff log in under the same limit as everybody.
    path("admin/login/", views.admin_log_in),
    path("admin/", admin.site.urls),
]
