"""The table of doors: pages at the root, REST under /api/v1, staff under /admin.

/mcp is mounted beside Django in config/asgi.py.
"""

from django.contrib import admin
from django.urls import include, path

import accounts.urls
import billing.urls
import evolution.urls
import playbooks.urls

pages = [
    path("", include((accounts.urls.pages, "accounts"))),
    path("", include((billing.urls.pages, "billing"))),
    path("", include((playbooks.urls.pages, "playbooks"))),
    path("", include((evolution.urls.pages, "evolution"))),
]
api = [
    path("", include((accounts.urls.api, "accounts"))),
    path("", include((billing.urls.api, "billing"))),
    path("", include((playbooks.urls.api, "playbooks"))),
    path("", include((evolution.urls.api, "evolution"))),
]
urlpatterns = [
    *pages,
    path("api/v1/", include((api, "api"))),
    path("admin/", admin.site.urls),
]
