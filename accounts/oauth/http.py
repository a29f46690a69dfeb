"""Decorators of OAuth views: available only where OAuth works, endpoints open to any origin."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    QueryDict,
)
from django.views.decorators.csrf import csrf_exempt

from accounts.oauth.metadata import is_oauth_available, request_origin

View = Callable[..., HttpResponseBase]
HEADERS = "Authorization, Content-Type, MCP-Protocol-Version"


def require_oauth_enabled(view: View) -> View:
    """404 where OAuth is disabled or would not work."""

    @wraps(view)
    def checked(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not is_oauth_available(request_origin(request)):
            raise Http404
        return view(request, *args, **kwargs)

    return checked


def oauth_endpoint(method: str) -> Callable[[View], View]:
    """An endpoint for programs: one method, no cookies and so no CSRF, any origin, no caching."""

    def wrap(view: View) -> View:
        @csrf_exempt
        @require_oauth_enabled
        @wraps(view)
        def opened(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            allowed = {method, "OPTIONS"} | ({"HEAD"} if method == "GET" else set())
            if request.method == "OPTIONS":
                response: HttpResponseBase = HttpResponse(status=204)
            elif request.method in allowed:
                response = view(request, *args, **kwargs)
            else:
                response = oauth_error("invalid_request", f"Send {method}.", status=405)
                response["Allow"] = ", ".join(sorted(allowed))
            response["Access-Control-Allow-Origin"] = "*"
            response["Access-Control-Allow-Methods"] = f"{method}, OPTIONS"
            response["Access-Control-Allow-Headers"] = HEADERS
            response["Cache-Control"] = "no-store"
            return response

        return opened

    return wrap


def contains_nul(sent: QueryDict) -> bool:
    """True if a value has a NUL character, which PostgreSQL cannot store."""
    return any("\x00" in value for _, values in sent.lists() for value in values)


def oauth_error(code: str, description: str, *, status: int = 400) -> JsonResponse:
    """An error response as in RFC 6749 and RFC 7591."""
    return JsonResponse({"error": code, "error_description": description}, status=status)
