"""The pages of this app; /mcp itself is mounted beside Django in config/asgi.py."""

from django.urls import URLPattern, path

from mcp_bridge.web import views

urlpatterns: list[URLPattern] = [
    path("connect", views.connect, name="connect"),
    path("connect/check", views.check, name="connect_check"),
]
