"""The table of this app's doors: pages and REST."""

from django.urls import URLPattern, path

from accounts import api as rest
from accounts import views

pages: list[URLPattern] = [
    path("login", views.log_in, name="log_in"),
    path("register", views.register, name="register"),
    path("logout", views.log_out, name="log_out"),
    path("keys", views.keys, name="keys"),
    path("keys/<uuid:pk>/rotate", views.rotate_key, name="rotate_key"),
    path("keys/<uuid:pk>/revoke", views.revoke_key, name="revoke_key"),
]
api: list[URLPattern] = [
    path("auth/register", rest.RegisterDoor.as_view(), name="register"),
    path("auth/login", rest.LogInDoor.as_view(), name="log_in"),
    path("auth/refresh", rest.RefreshDoor.as_view(), name="refresh"),
    path("auth/logout", rest.LogOutDoor.as_view(), name="log_out"),
    path("auth/me", rest.MeDoor.as_view(), name="me"),
    path("auth/api-keys", rest.ApiKeysDoor.as_view(), name="keys"),
    path("auth/api-keys/<uuid:pk>", rest.ApiKeyDoor.as_view(), name="key"),
    path("auth/api-keys/<uuid:pk>/rotate", rest.RotateApiKeyDoor.as_view(), name="rotate_key"),
]
