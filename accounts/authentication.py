"""Who asks at the REST door: an API key or an access token, as `Authorization: Bearer`."""

from typing import TYPE_CHECKING, Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.errors import Forbidden, NotAuthenticated
from accounts.http import product_of
from accounts.models import User
from accounts.scopes import Principal
from accounts.services import principal_for_bearer

if TYPE_CHECKING:
    # DRF's views import this module while they load.
    from rest_framework.views import APIView


class BearerAuthentication(BaseAuthentication):
    """`request.user` is the User and `request.auth` the Principal of the credential."""

    def authenticate(self, request: Request) -> tuple[User, Principal] | None:
        header = request.META.get("HTTP_AUTHORIZATION", "")
        if not header:
            return None
        kind, _, token = header.partition(" ")
        if kind.lower() != "bearer":
            raise NotAuthenticated
        principal = principal_for_bearer(token.strip())
        principal = principal.with_client(product_of(request.META.get("HTTP_USER_AGENT", "")))
        return principal.user, principal

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class HasScope(BasePermission):
    """Allows what the view declares: `scopes = {"GET": Scope.READ}`; None means public.

    A view or method without a declaration is refused to everyone.
    """

    def has_permission(self, request: Request, view: "APIView") -> bool:
        method = "GET" if request.method == "HEAD" else str(request.method)
        if method == "OPTIONS" or not hasattr(view, method.lower()):
            raise MethodNotAllowed(str(request.method))
        declared = getattr(view, "scopes", {})
        if method not in declared:
            raise Forbidden("This route declares no scope, so nobody may use it.")
        if declared[method] is None:
            return True
        if not isinstance(request.auth, Principal):
            raise NotAuthenticated
        request.auth.require(declared[method])
        return True


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # theirs is untyped
    """How the OpenAPI document names our credentials."""

    target_class = BearerAuthentication
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key (`ace_live_…`) or an access token from `/auth/login`.",
        }
