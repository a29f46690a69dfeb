"""The URL table: pages at the root, REST under /api/v1, the admin under /admin.

/mcp is mounted beside Django in config/asgi.py.
"""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

import accounts.api.urls
import accounts.oauth.urls
import accounts.web.urls
import billing.api.urls
import billing.web.urls
import evolution.api.urls
import evolution.web.urls
import mcp_bridge.web.urls
import playbooks.api.urls
import playbooks.web.urls
from config.docs_site import views as docs
from config.search import views as search
from config.web import views
from core.rest import exceptions as rest
from core.rest.views import route

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
    path("start", views.onboarding, name="onboarding"),
    path("start/dismiss", views.dismiss_onboarding, name="dismiss_onboarding"),
    path("demo", views.try_demo, name="try_demo"),
    path("stop-viewing", views.stop_viewing, name="stop_viewing"),
    path("theme", views.choose_theme, name="theme"),
    path("go", search.go, name="command_palette"),
    path("docs", docs.index, name="docs_index"),
    path("docs/search", search.search_documentation, name="docs_search"),
    path("docs/<path:slug>.md", docs.markdown_source, name="docs_source"),
    path("docs/<slug:name>.svg", docs.image, name="docs_image"),
    path("docs/<path:slug>", docs.page, name="docs_page"),
    path("llms.txt", docs.llms, name="llms"),
    path("llms-full.txt", docs.llms_full, name="llms_full"),
    path("", include((accounts.web.urls, "accounts"))),
    *accounts.web.urls.allauth_urlpatterns,
    path("", include(accounts.oauth.urls)),
    path("", include((billing.web.urls, "billing"))),
    path("", include((playbooks.web.urls, "playbooks"))),
    path("", include((evolution.web.urls, "evolution"))),
    path("", include((mcp_bridge.web.urls, "mcp_bridge"))),
]
api: list[URLPattern | URLResolver] = [
    path("", include((evolution.api.urls, "evolution"))),
    path("", include((playbooks.api.urls, "playbooks"))),
    path("", include((accounts.api.urls, "accounts"))),
    path("", include((billing.api.urls, "billing"))),
    route("search", search.SearchViewSet, get="search"),
    path("<path:rest>", rest.route_not_found),
]
urlpatterns = [
    # First: each pattern before it costs every REST call 2 µs.
    path("api/v1/", include((api, "api"))),
    *pages,
    path("api/schema", docs.SchemaView.as_view(), name="schema"),
    path("api/docs", docs.api_docs, name="api_docs"),
    # Before the admin's own login, so that staff log in under the same rate limit as everybody.
    path("admin/login/", views.admin_log_in),
    path("admin/", admin.site.urls),
]
