"""REST views: registration, login, the own account, API keys."""

from dataclasses import asdict
from datetime import timedelta
from typing import Any, ClassVar
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
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
from core.http.reauthentication import require_recent_login
from core.http.requests import client_address, site_url
from core.rest.idempotency import idempotent
from core.rest.views import BaseAPIView, BaseViewSet, operation
from core.security.scopes import Scope

REGISTRATION_MESSAGES = {
    False: "You can log in now. If you already had an account, its password is unchanged.",
    True: "Check your inbox: our email tells you how to continue.",
}


class PublicView(BaseAPIView):
    """A route without authentication, which ignores a stale credential in the header."""

    authentication_classes = ()
    scopes: ClassVar = {"POST": None}


class RegisterView(PublicView):
    """POST /auth/register."""

    @extend_schema(
        operation_id="register",
        request=s.CredentialsSerializer,
        responses={201: s.RegistrationSerializer},
    )
    def post(self, request: Request) -> Response:
        """Create an account. The response is the same if the email already has one."""
        sent = self.validated_body(s.CredentialsSerializer)
        http = request._request
        register_user(**sent, address=client_address(http), site=site_url(http))
        body = {
            "email": sent["email"].strip().lower(),
            "status": "registered",
            "message": REGISTRATION_MESSAGES[settings.EMAIL_VERIFICATION == "mandatory"],
        }
        return Response(body, status=201)


class LoginView(PublicView):
    """POST /auth/login."""

    @extend_schema(operation_id="log_in", request=s.LoginSerializer, responses=s.TokensSerializer)
    def post(self, request: Request) -> Response:
        """Get an access token and a refresh token.

        With a second factor the response is 401 `second_factor_required` until `code` is sent,
        and `wrong_code` if it is incorrect.
        """
        sent, http = self.validated_body(s.LoginSerializer), request._request
        user = log_in(**sent, address=client_address(http), site=site_url(http))
        return _tokens_response(issue_tokens(user=user))


class TokenRefreshView(PublicView):
    """POST /auth/refresh."""

    @extend_schema(
        operation_id="refresh_tokens",
        request=s.TokenRefreshSerializer,
        responses=s.TokensSerializer,
    )
    def post(self, request: Request) -> Response:
        """Exchange a refresh token for a new pair. Using one twice revokes all of the login."""
        return _tokens_response(refresh_tokens(**self.validated_body(s.TokenRefreshSerializer)))


class LogoutView(PublicView):
    """POST /auth/logout."""

    @extend_schema(operation_id="log_out", request=s.TokenRefreshSerializer, responses={204: None})
    def post(self, request: Request) -> Response:
        """Revoke this refresh token and every token of the same login."""
        revoke_tokens(**self.validated_body(s.TokenRefreshSerializer))
        return Response(status=204)


class CurrentUserView(BaseAPIView):
    """GET /auth/me."""

    scopes: ClassVar = {"GET": Scope.READ, "DELETE": Scope.ACCOUNT}

    @extend_schema(operation_id="get_current_user", responses=s.CurrentUserSerializer)
    def get(self, request: Request) -> Response:
        """Get your account and the scopes of this credential."""
        user, key = self.principal.user, self.principal.api_key
        body = {
            "id": user.pk,
            "email": user.email,
            "created_at": user.created_at,
            "scopes": sorted(self.principal.scopes),
            "api_key": key.name if key else None,
        }
        return Response(s.CurrentUserSerializer(body).data)

    @extend_schema(
        operation_id="delete_account", request=s.AccountDeleteSerializer, responses={204: None}
    )
    def delete(self, request: Request) -> Response:
        """Delete the account and everything in it. Requires the password."""
        user, source = self.principal.user, LoginSource(client_address(request._request))
        sent = self.validated_body(s.AccountDeleteSerializer)
        reauthenticate_user(user=user, source=source, **sent)
        delete_account(user=user)
        return Response(status=204)


class AccountExportView(BaseAPIView):
    """GET /auth/me/export."""

    scopes: ClassVar = {"GET": Scope.ACCOUNT}

    @extend_schema(
        operation_id="export_account",
        responses={(200, "application/zip"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request) -> HttpResponse:
        """Download everything in the account as a ZIP of JSON files, one per type.

        Needs a login within the last five minutes, else 403 `login_too_old`.
        """
        require_recent_login(self.principal)
        file = export_account(user=self.principal.user)
        headers = {"Content-Disposition": 'attachment; filename="ace-account.zip"'}
        return HttpResponse(file, content_type="application/zip", headers=headers)


class ApiKeyListView(BaseAPIView):
    """GET, POST /auth/api-keys."""

    scopes: ClassVar = {"GET": Scope.ACCOUNT, "POST": Scope.ACCOUNT}

    @extend_schema(operation_id="list_api_keys", responses=s.ApiKeySerializer(many=True))
    def get(self, request: Request) -> Response:
        """List your API keys, newest first, including revoked ones."""
        return self.paginate(ApiKey.objects.for_user(self.principal), s.ApiKeySerializer)

    @extend_schema(
        operation_id="create_api_key",
        request=s.ApiKeyCreateSerializer,
        responses={201: s.ApiKeyWithSecretSerializer},
    )
    @idempotent(secret=True)
    def post(self, request: Request) -> Response:
        """Create a key. Its secret is only in this response.

        Needs a login within the last five minutes, else 403 `login_too_old`.
        """
        require_recent_login(self.principal)
        sent = self.validated_body(s.ApiKeyCreateSerializer)
        return _new_key_response(*create_api_key(user=self.principal.user, **sent))


class ApiKeyDetailView(BaseAPIView):
    """GET, PATCH, DELETE /auth/api-keys/{id}."""

    scopes: ClassVar = {"GET": Scope.ACCOUNT, "PATCH": Scope.ACCOUNT, "DELETE": Scope.ACCOUNT}

    @extend_schema(operation_id="get_api_key", responses=s.ApiKeySerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """Get an API key, without its secret."""
        return Response(s.ApiKeySerializer(self.key(pk)).data)

    @extend_schema(
        operation_id="update_api_key",
        request=s.ApiKeyUpdateSerializer,
        responses=s.ApiKeySerializer,
    )
    def patch(self, request: Request, pk: UUID) -> Response:
        """Change name, scopes or playbooks; omitted fields stay. Needs a recent login."""
        require_recent_login(self.principal)
        key = update_api_key(key=self.key(pk), **self.validated_body(s.ApiKeyUpdateSerializer))
        return Response(s.ApiKeySerializer(key).data)

    @extend_schema(operation_id="revoke_api_key", responses={204: None})
    def delete(self, request: Request, pk: UUID) -> Response:
        """Revoke the key, effective from the next request."""
        revoke_api_key(key=self.key(pk), reason="revoked over REST")
        return Response(status=204)

    def key(self, pk: UUID) -> ApiKey:
        return ApiKey.objects.for_user(self.principal).fetch(pk)


class ApiKeyRotateView(BaseAPIView):
    """POST /auth/api-keys/{id}/rotate."""

    scopes: ClassVar = {"POST": Scope.ACCOUNT}

    @extend_schema(
        operation_id="rotate_api_key",
        request=s.ApiKeyRotateSerializer,
        responses={201: s.ApiKeyWithSecretSerializer},
    )
    @idempotent(secret=True)
    def post(self, request: Request, pk: UUID) -> Response:
        """Create a replacement; the old key expires after the overlap. Needs a recent login."""
        require_recent_login(self.principal)
        key = ApiKey.objects.for_user(self.principal).fetch(pk)
        overlap = timedelta(hours=self.validated_body(s.ApiKeyRotateSerializer)["overlap_hours"])
        return _new_key_response(*rotate_api_key(key=key, overlap=overlap))


class WebhookViewSet(BaseViewSet):
    @operation(Scope.ACCOUNT, s.WebhookSerializer)
    def get_webhook(self) -> WebhookEndpoint:
        """Get the webhook of your account and its last deliveries."""
        return webhooks.webhook_of(self.principal.user)

    @operation(Scope.ACCOUNT, s.WebhookWithSecretSerializer, takes=s.WebhookUpdateSerializer)
    def set_webhook(self, sent: dict[str, Any]) -> dict[str, str]:
        """Send the events of your account to a URL. The signing secret is only in this response.

        Needs a login within the last five minutes, else 403 `login_too_old`.
        """
        require_recent_login(self.principal)
        endpoint, secret = webhooks.set_webhook(user=self.principal.user, **sent)
        return {"url": endpoint.url, "secret": secret}

    @operation(Scope.ACCOUNT, {204: None})
    def delete_webhook(self) -> None:
        """Turn the webhook off; what was not delivered is gone."""
        webhooks.remove_webhook(user=self.principal.user)

    @operation(Scope.ACCOUNT, {202: s.WebhookDeliverySerializer})
    def send_test_event(self) -> WebhookDelivery:
        """Queue a test event."""
        return webhooks.send_test_event(user=self.principal.user)


def _tokens_response(pair: TokenPair) -> Response:
    return Response(asdict(pair) | {"token_type": "Bearer"})


def _new_key_response(key: ApiKey, token: str) -> Response:
    return Response({**s.ApiKeySerializer(key).data, "key": token}, status=201)
