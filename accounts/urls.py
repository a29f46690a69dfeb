"""The table of this app's doors: pages and REST."""

from django.urls import URLPattern, path

from accounts import views

pages: list[URLPattern] = [
    path("login", views.log_in, name="log_in"),
    path("register", views.register, name="register"),
    path("logout", views.log_out, name="log_out"),
    path("keys", views.keys, name="keys"),
    path("keys/<uuid:pk>/rotate", views.rotate_key, name="rotate_key"),
    path("keys/<uuid:pk>/revoke", views.revoke_key, name="revoke_key"),
]
api: list[URLPattern] = []
