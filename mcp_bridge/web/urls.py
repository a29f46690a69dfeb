"""The pages of this app; config/asgi.py mounts /mcp itself."""

from django.urls import URLPattern, path

from mcp_bridge.web import views

urlpatterns: list[URLPattern] = [
    path("connect", views.connect, name="connect"),
    path("connect/check", views.check, name="connect_check"),
]
