"""The permission class of every REST route: the scope of its operation."""

from typing import Any

from rest_framework.exceptions import MethodNotAllowed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from core.errors import Forbidden, NotAuthenticated
from core.security.scopes import Principal


class HasScope(BasePermission):
    """Requires the scope of the operation; None is public.

    A method that is no operation is refused to everyone.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        handler = getattr(view, str(request.method).lower(), None)
        if request.method == "OPTIONS" or handler is None:
            raise MethodNotAllowed(str(request.method))
        if not hasattr(handler, "scope"):
            raise Forbidden("This route declares no scope, so no request is allowed.")
        if handler.scope is None:
            return True
        if not isinstance(request.auth, Principal):
            raise NotAuthenticated
        request.auth.require(handler.scope)
        return True
