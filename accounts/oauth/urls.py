"""URLs of OAuth; the metadata documents are also at the paths with /mcp, where clients look."""

from django.urls import URLPattern, path

from accounts.oauth import endpoints, views

SERVER, RESOURCE = "oauth-authorization-server", "oauth-protected-resource"
app_name = "oauth"
urlpatterns: list[URLPattern] = [
    path(f".well-known/{SERVER}", endpoints.server, name="server"),
    path(f".well-known/{SERVER}/mcp", endpoints.server),
    path(f".well-known/{RESOURCE}", endpoints.resource),
    path(f".well-known/{RESOURCE}/mcp", endpoints.resource, name="resource"),
    path("oauth/authorize", views.authorize, name="authorize"),
    path("oauth/token", endpoints.token, name="token"),
    path("oauth/register", endpoints.register, name="register"),
    path("oauth/revoke", endpoints.revoke, name="revoke"),
]
