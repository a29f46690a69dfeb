"""REST authentication: an API key or access token as `Authorization: Bearer`."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from accounts.keys.authentication import principal_for_bearer
from accounts.models import User
from core.errors import NotAuthenticated
from core.http.requests import user_agent_product
from core.security.scopes import Principal


class BearerAuthentication(BaseAuthentication):
    """`request.user` is the User and `request.auth` the Principal of the credential."""

    def authenticate(self, request: Request) -> tuple[User, Principal] | None:
        header = request.META.get("HTTP_AUTHORIZATION", "")
        if not header:
            return None
        kind, _, token = header.partition(" ")
        if kind.lower() != "bearer":
            raise NotAuthenticated
        client = user_agent_product(request.META.get("HTTP_USER_AGENT", ""))
        principal = principal_for_bearer(token.strip()).with_client(client)
        return principal.user, principal

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # untyped
    """The security scheme in the OpenAPI document."""

    target_class = BearerAuthentication
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key (`ace_live_…`) or an access token from `/auth/login`.",
        }
