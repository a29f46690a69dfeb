"""The permission class of every REST route: the scope that its view declares."""

from typing import TYPE_CHECKING

from rest_framework.exceptions import MethodNotAllowed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from core.errors import Forbidden, NotAuthenticated
from core.security.scopes import Principal

if TYPE_CHECKING:
    # DRF's views import this module while they load.
    from rest_framework.views import APIView


class HasScope(BasePermission):
    """Requires the scope of the operation, or of `scopes = {"GET": Scope.READ}`; None is public.

    A view or method without a declaration is refused to everyone.
    """

    def has_permission(self, request: Request, view: "APIView") -> bool:
        method = "GET" if request.method == "HEAD" else str(request.method)
        if method == "OPTIONS" or not hasattr(view, method.lower()):
            raise MethodNotAllowed(str(request.method))
        scope = getattr(getattr(view, method.lower()), "scope", None)
        declared = {method: scope} if scope else getattr(view, "scopes", {})
        if method not in declared:
            raise Forbidden("This route declares no scope, so no request is allowed.")
        if declared[method] is None:
            return True
        if not isinstance(request.auth, Principal):
            raise NotAuthenticated
        request.auth.require(declared[method])
        return True
