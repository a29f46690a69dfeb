"""Signing in and API keys, at the REST door."""

from dataclasses import asdict
from datetime import timedelta
from typing import ClassVar
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import services
from accounts import shapes as s
from accounts.idempotency import idempotent
from accounts.lockout import Source
from accounts.models import ApiKey
from accounts.rest import Door, client_address, site_of
from accounts.scopes import Scope

NEXT = {
    False: "You can log in now. If you had an account, its password is unchanged.",
    True: "Look into the inbox of this address: our e-mail there says how to go on.",
}


class Public(Door):
    """Nobody needs to be signed in, and a stale credential in the header does no harm."""

    authentication_classes = ()
    scopes: ClassVar = {"POST": None}


class RegisterDoor(Public):
    """POST /auth/register."""

    @extend_schema(
        operation_id="register", request=s.CredentialsIn, responses={201: s.RegisteredShape}
    )
    def post(self, request: Request) -> Response:
        """Make an account. The answer is the same when the address has one already."""
        sent = self.sent(s.CredentialsIn)
        services.register_user(**sent, address=client_address(request), site=site_of(request))
        body = {
            "email": sent["email"].strip().lower(),
            "status": "registered",
            "message": NEXT[settings.EMAIL_VERIFICATION == "mandatory"],
        }
        return Response(body, status=201)


class LogInDoor(Public):
    """POST /auth/login."""

    @extend_schema(operation_id="log_in", request=s.LogInIn, responses=s.TokensShape)
    def post(self, request: Request) -> Response:
        """Get an access token and the first refresh token of a new sign-in.

        An account with a second factor answers 401 `second_factor_required` until `code` is sent,
        and `wrong_code` when it does not fit.
        """
        sent = self.sent(s.LogInIn)
        user = services.log_in(**sent, address=client_address(request), site=site_of(request))
        return _tokens(services.issue_tokens(user=user))


class RefreshDoor(Public):
    """POST /auth/refresh."""

    @extend_schema(operation_id="refresh_tokens", request=s.RefreshIn, responses=s.TokensShape)
    def post(self, request: Request) -> Response:
        """Trade a refresh token for a new pair. Using one twice ends the whole sign-in."""
        return _tokens(services.refresh_tokens(**self.sent(s.RefreshIn)))


class LogOutDoor(Public):
    """POST /auth/logout."""

    @extend_schema(operation_id="log_out", request=s.RefreshIn, responses={204: None})
    def post(self, request: Request) -> Response:
        """End the sign-in that this refresh token belongs to, access tokens included."""
        services.revoke_tokens(**self.sent(s.RefreshIn))
        return Response(status=204)


class MeDoor(Door):
    """GET /auth/me."""

    scopes: ClassVar = {"GET": Scope.READ, "DELETE": Scope.ACCOUNT}

    @extend_schema(operation_id="read_me", responses=s.MeShape)
    def get(self, request: Request) -> Response:
        """Who you are, and what this credential may do."""
        user, key = self.who.user, self.who.api_key
        body = {
            "id": user.pk,
            "email": user.email,
            "created_at": user.created_at,
            "scopes": sorted(self.who.scopes),
            "api_key": key.name if key else None,
        }
        return Response(s.MeShape(body).data)

    @extend_schema(operation_id="delete_me", request=s.DeleteMeIn, responses={204: None})
    def delete(self, request: Request) -> Response:
        """Delete the account and everything in it, for good. Needs the password again."""
        user, source = self.who.user, Source(client_address(request))
        sent = self.sent(s.DeleteMeIn)
        services.recheck_person(user=user, source=source, **sent)
        services.delete_account(user=user)
        return Response(status=204)


class ExportDoor(Door):
    """GET /auth/me/export."""

    scopes: ClassVar = {"GET": Scope.ACCOUNT}

    @extend_schema(
        operation_id="export_me",
        responses={(200, "application/zip"): OpenApiTypes.BINARY},
    )
    def get(self, request: Request) -> HttpResponse:
        """Everything of the account as a ZIP of JSON files, one for each kind of row."""
        file = services.export_account(user=self.who.user)
        named = {"Content-Disposition": 'attachment; filename="ace-account.zip"'}
        return HttpResponse(file, content_type="application/zip", headers=named)


class ApiKeysDoor(Door):
    """GET, POST /auth/api-keys."""

    scopes: ClassVar = {"GET": Scope.ACCOUNT, "POST": Scope.ACCOUNT}

    @extend_schema(operation_id="list_api_keys", responses=s.ApiKeyShape(many=True))
    def get(self, request: Request) -> Response:
        """Your API keys, newest first, revoked ones included."""
        return self.page(ApiKey.objects.for_user(self.who), s.ApiKeyShape)

    @extend_schema(
        operation_id="create_api_key", request=s.ApiKeyIn, responses={201: s.NewApiKeyShape}
    )
    @idempotent(secret=True)
    def post(self, request: Request) -> Response:
        """Create a key. Its secret is in this answer and nowhere else."""
        return _new_key(*services.create_api_key(user=self.who.user, **self.sent(s.ApiKeyIn)))


class ApiKeyDoor(Door):
    """GET, PATCH, DELETE /auth/api-keys/{id}."""

    scopes: ClassVar = {
        "GET": Scope.ACCOUNT,
        "PATCH": Scope.ACCOUNT,
        "DELETE": Scope.ACCOUNT,
    }

    @extend_schema(operation_id="read_api_key", responses=s.ApiKeyShape)
    def get(self, request: Request, pk: UUID) -> Response:
        """One key, without its secret."""
        return Response(s.ApiKeyShape(self.key(pk)).data)

    @extend_schema(operation_id="update_api_key", request=s.ApiKeyPatch, responses=s.ApiKeyShape)
    def patch(self, request: Request, pk: UUID) -> Response:
        """Change name, scopes or playbooks; what is left out stays."""
        key = services.update_api_key(key=self.key(pk), **self.sent(s.ApiKeyPatch))
        return Response(s.ApiKeyShape(key).data)

    @extend_schema(operation_id="revoke_api_key", responses={204: None})
    def delete(self, request: Request, pk: UUID) -> Response:
        """Revoke the key: it is refused from the next request on."""
        services.revoke_api_key(key=self.key(pk), reason="revoked over REST")
        return Response(status=204)

    def key(self, pk: UUID) -> ApiKey:
        return ApiKey.objects.for_user(self.who).fetch(pk)


class RotateApiKeyDoor(Door):
    """POST /auth/api-keys/{id}/rotate."""

    scopes: ClassVar = {"POST": Scope.ACCOUNT}

    @extend_schema(
        operation_id="rotate_api_key", request=s.RotateIn, responses={201: s.NewApiKeyShape}
    )
    @idempotent(secret=True)
    def post(self, request: Request, pk: UUID) -> Response:
        """Create the key's successor; the old one ends after the overlap."""
        key = ApiKey.objects.for_user(self.who).fetch(pk)
        overlap = timedelta(hours=self.sent(s.RotateIn)["overlap_hours"])
        return _new_key(*services.rotate_api_key(key=key, overlap=overlap))


def _tokens(pair: services.TokenPair) -> Response:
    return Response(asdict(pair) | {"token_type": "Bearer"})


def _new_key(key: ApiKey, token: str) -> Response:
    return Response({**s.ApiKeyShape(key).data, "key": token}, status=201)
