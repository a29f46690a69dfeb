"""REST routes of accounts."""

from django.urls import URLPattern

from accounts.api import views
from core.rest.views import route

login, user = views.LoginViewSet, views.CurrentUserViewSet
keys, webhook = views.ApiKeyViewSet, views.WebhookViewSet
KEY = "auth/api-keys/<uuid:pk>"
urlpatterns: list[URLPattern] = [
    route("auth/register", login, post="register"),
    route("auth/login", login, post="log_in"),
    route("auth/refresh", login, post="refresh_tokens"),
    route("auth/logout", login, post="log_out"),
    route("auth/me", user, get="get_current_user", delete="delete_account"),
    route("auth/me/export", user, get="export_account"),
    route("auth/api-keys", keys, get="list_api_keys", post="create_api_key"),
    route(KEY, keys, get="get_api_key", patch="update_api_key", delete="revoke_api_key"),
    route(f"{KEY}/rotate", keys, post="rotate_api_key"),
    route("webhook", webhook, get="get_webhook", put="set_webhook", delete="delete_webhook"),
    route("webhook/test", webhook, post="send_test_event"),
]
