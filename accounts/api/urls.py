"""REST routes of accounts."""

from django.urls import URLPattern, path

from accounts.api import views as rest
from core.rest.views import route

webhook = rest.WebhookViewSet
urlpatterns: list[URLPattern] = [
    path("auth/register", rest.RegisterView.as_view(), name="register"),
    path("auth/login", rest.LoginView.as_view(), name="log_in"),
    path("auth/refresh", rest.TokenRefreshView.as_view(), name="refresh"),
    path("auth/logout", rest.LogoutView.as_view(), name="log_out"),
    path("auth/me", rest.CurrentUserView.as_view(), name="me"),
    path("auth/me/export", rest.AccountExportView.as_view(), name="export_account"),
    path("auth/api-keys", rest.ApiKeyListView.as_view(), name="keys"),
    path("auth/api-keys/<uuid:pk>", rest.ApiKeyDetailView.as_view(), name="key"),
    path("auth/api-keys/<uuid:pk>/rotate", rest.ApiKeyRotateView.as_view(), name="rotate_key"),
    route("webhook", webhook, get="get_webhook", put="set_webhook", delete="delete_webhook"),
    route("webhook/test", webhook, post="send_test_event"),
]
