"""REST API of connected apps: for users, not for API keys or apps."""

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import ConnectedApp
from accounts.oauth.connections import disconnect_app
from core.rest.views import BaseAPIView
from core.security.scopes import KEY_SCOPES, Scope


class ConnectedAppSerializer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField(help_text="The name that the app gives itself.")
    redirect_host = serializers.CharField(help_text="The host that the browser was redirected to.")
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=[scope.value for scope in KEY_SCOPES])
    )
    created_at = serializers.DateTimeField()
    last_used_at = serializers.DateTimeField(allow_null=True, help_text="To the minute.")


class ConnectedAppListView(BaseAPIView):
    """GET /auth/apps."""

    scopes: ClassVar = {"GET": Scope.ACCOUNT}

    @extend_schema(operation_id="list_connected_apps", responses=ConnectedAppSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the apps that you connected, newest first."""
        return self.paginate(
            ConnectedApp.objects.for_user(self.principal).newest_first(), ConnectedAppSerializer
        )


class ConnectedAppDetailView(BaseAPIView):
    """GET, DELETE /auth/apps/{id}."""

    scopes: ClassVar = {"GET": Scope.ACCOUNT, "DELETE": Scope.ACCOUNT}

    @extend_schema(operation_id="get_connected_app", responses=ConnectedAppSerializer)
    def get(self, request: Request, pk: UUID) -> Response:
        """Get a connected app."""
        return Response(ConnectedAppSerializer(self.app(pk)).data)

    @extend_schema(operation_id="disconnect_app", responses={204: None})
    def delete(self, request: Request, pk: UUID) -> Response:
        """Disconnect the app, effective from the next request."""
        disconnect_app(app=self.app(pk), by=self.principal)
        return Response(status=204)

    def app(self, pk: UUID) -> ConnectedApp:
        return ConnectedApp.objects.for_user(self.principal).newest_first().fetch(pk)
