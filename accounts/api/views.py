"""REST views: registration, login, the own account, API keys."""

from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from rest_framework.response import Response

from accounts.api import serializers as s
from accounts.keys.api_keys import create_api_key, revoke_api_key, rotate_api_key, update_api_key
from accounts.keys.jwt_tokens import TokenPair, issue_tokens, refresh_tokens, revoke_tokens
from accounts.models import ApiKey, WebhookDelivery, WebhookEndpoint
from accounts.services import webhooks
from accounts.services.account_settings import reauthenticate_user
from accounts.services.login import log_in, register_user
from accounts.services.login_throttling import LoginSource
from accounts.services.personal_data import delete_account, export_account
from core.http.requests import client_address, site_url
from core.rest.views import BaseViewSet, operation
from core.security.scopes import Scope

NEW_KEY = {201: s.ApiKeyWithSecretSerializer}
new_key_operation = partial(
    operation, Scope.ACCOUNT, NEW_KEY, once=True, secret=True, recent_login=True
)
REGISTRATION_MESSAGES = {
    False: "You can log in now. If you already had an account, its password is unchanged.",
    True: "Check your inbox: our email tells you how to continue.",
}


class LoginViewSet(BaseViewSet):
    """Without authentication: a stale credential in the header is ignored."""

    authentication_classes = ()

    @operation(None, {201: s.RegistrationSerializer}, takes=s.CredentialsSerializer)
    def register(self, sent: dict[str, Any]) -> dict[str, str]:
        """Create an account. The response is the same if the email already has one."""
        http = self.request._request
        register_user(**sent, address=client_address(http), site=site_url(http))
        return {
            "email": sent["email"].strip().lower(),
            "status": "registered",
            "message": REGISTRATION_MESSAGES[settings.EMAIL_VERIFICATION == "mandatory"],
        }

    @operation(None, s.TokensSerializer, takes=s.LoginSerializer)
    def log_in(self, sent: dict[str, Any]) -> TokenPair:
        """Get an access token and a refresh token.

        With a second factor the response is 401 `second_factor_required` until `code` is sent,
        and `wrong_code` if it is incorrect.
        """
        http = self.request._request
        return issue_tokens(user=log_in(**sent, address=client_address(http), site=site_url(http)))

    @operation(None, s.TokensSerializer, takes=s.TokenRefreshSerializer)
    def refresh_tokens(self, sent: dict[str, Any]) -> TokenPair:
        """Exchange a refresh token for a new pair. Using one twice revokes the whole login."""
        return refresh_tokens(**sent)

    @operation(None, {204: None}, takes=s.TokenRefreshSerializer)
    def log_out(self, sent: dict[str, Any]) -> None:
        """Revoke this refresh token and every token of the same login."""
        revoke_tokens(**sent)


class CurrentUserViewSet(BaseViewSet):
    @operation(Scope.READ, s.CurrentUserSerializer)
    def get_current_user(self) -> dict[str, Any]:
        """Get your account and the scopes of this credential."""
        by = self.principal
        return {"user": by.user, "scopes": sorted(by.scopes), "api_key": by.api_key}

    @operation(Scope.ACCOUNT, {204: None}, takes=s.AccountDeleteSerializer)
    def delete_account(self, sent: dict[str, Any]) -> None:
        """Delete the account and everything in it. Requires the password."""
        user, source = self.principal.user, LoginSource(client_address(self.request._request))
        reauthenticate_user(user=user, source=source, **sent)
        delete_account(user=user)

    @operation(Scope.ACCOUNT, {(200, "application/zip"): OpenApiTypes.BINARY}, recent_login=True)
    def export_account(self) -> HttpResponse:
        """Download everything in the account as a ZIP of JSON files, one per type.

        Needs a login within the last five minutes, else 403 `login_too_old`.
        """
        file = export_account(user=self.principal.user)
        headers = {"Content-Disposition": 'attachment; filename="ace-account.zip"'}
        return HttpResponse(file, content_type="application/zip", headers=headers)


class ApiKeyViewSet(BaseViewSet):
    def key(self, pk: UUID) -> ApiKey:
        return ApiKey.objects.for_user(self.principal).fetch(pk)

    @operation(Scope.ACCOUNT, s.ApiKeySerializer(many=True))
    def list_api_keys(self) -> Response:
        """List your API keys, newest first, including revoked ones."""
        return self.paginate(ApiKey.objects.for_user(self.principal), s.ApiKeySerializer)

    @new_key_operation(takes=s.ApiKeyCreateSerializer)
    def create_api_key(self, sent: dict[str, Any]) -> Response:
        """Create a key. Its secret is only in this response.

        Needs a login within the last five minutes, else 403 `login_too_old`.
        """
        return _new_key_response(*create_api_key(user=self.principal.user, **sent))

    @operation(Scope.ACCOUNT, s.ApiKeySerializer)
    def get_api_key(self, pk: UUID) -> ApiKey:
        """Get an API key, without its secret."""
        return self.key(pk)

    @operation(
        Scope.ACCOUNT,
        s.ApiKeySerializer,
        takes=s.ApiKeyUpdateSerializer,
        partial=True,
        recent_login=True,
    )
    def update_api_key(self, pk: UUID, sent: dict[str, Any]) -> ApiKey:
        """Change name, scopes or playbooks; omitted fields stay. Needs a recent login."""
        return update_api_key(key=self.key(pk), **sent)

    @operation(Scope.ACCOUNT, {204: None})
    def revoke_api_key(self, pk: UUID) -> None:
        """Revoke the key, effective from the next request."""
        revoke_api_key(key=self.key(pk), reason="revoked over REST")

    @new_key_operation(takes=s.ApiKeyRotateSerializer)
    def rotate_api_key(self, pk: UUID, sent: dict[str, Any]) -> Response:
        """Rotate the key; the old one expires after the overlap. Needs a recent login."""
        overlap = timedelta(hours=sent["overlap_hours"])
        return _new_key_response(*rotate_api_key(key=self.key(pk), overlap=overlap))


class WebhookViewSet(BaseViewSet):
    @operation(Scope.ACCOUNT, s.WebhookSerializer)
    def get_webhook(self) -> WebhookEndpoint:
        """Get the webhook of your account and its last deliveries."""
        return webhooks.webhook_of(self.principal.user)

    @operation(
        Scope.ACCOUNT,
        s.WebhookWithSecretSerializer,
        takes=s.WebhookUpdateSerializer,
        recent_login=True,
    )
    def set_webhook(self, sent: dict[str, Any]) -> dict[str, str]:
        """Send the events of your account to a URL. The signing secret is only in this response.

        Needs a login within the last five minutes, else 403 `login_too_old`.
        """
        endpoint, secret = webhooks.set_webhook(user=self.principal.user, **sent)
        return {"url": endpoint.url, "secret": secret}

    @operation(Scope.ACCOUNT, {204: None})
    def delete_webhook(self) -> None:
        """Turn the webhook off; undelivered events are dropped."""
        webhooks.remove_webhook(user=self.principal.user)

    @operation(Scope.ACCOUNT, {202: s.WebhookDeliverySerializer})
    def send_test_event(self) -> WebhookDelivery:
        """Queue a test event."""
        return webhooks.send_test_event(user=self.principal.user)


def _new_key_response(key: ApiKey, token: str) -> Response:
    return Response({**s.ApiKeySerializer(key).data, "key": token}, status=201)
