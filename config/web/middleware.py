"""Middleware: request ids, the body limit, probes, error pages, and htmx polls after a logout."""

import logging
import re
import uuid
from time import perf_counter, thread_time
from typing import Any, cast

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render, resolve_url
from django.urls import resolve
from django.utils.deprecation import MiddlewareMixin

from config.observability.metrics import observe_request
from core.errors import AceError, RateLimited, TooLarge
from core.http.request_id import caller_id, request_id
from core.http.requests import log_if_over_budget
from core.ratelimit.limits import count_request
from core.rest.exceptions import error_body
from core.sql.storage_errors import log_storage_error, storage_error

REQUEST_ID_PATTERN = re.compile(r"[A-Za-z0-9._-]{8,64}")
PROBE_PATHS = {"/healthz", "/readyz", "/metrics"}
logger = logging.getLogger(__name__)


def log_request(method: str, route: str, status: int, seconds: float) -> None:
    """One line for a request: the route, not the path, which may hold the token of a link."""
    fields: dict[str, Any] = {"status": status, "took_ms": round(1000 * seconds)}
    if caller := caller_id.get():
        fields["user_id"] = caller
    logger.info("%s %s", method, route, extra=fields)


class RequestIdMiddleware(MiddlewareMixin):
    """Uses a well-formed `X-Request-ID` or creates one, returns it, and times the request."""

    def process_request(self, request: HttpRequest) -> None:
        given = request.headers.get("X-Request-ID", "")
        request.request_id = given if REQUEST_ID_PATTERN.fullmatch(given) else uuid.uuid4().hex  # type: ignore[attr-defined]  # Django's documented way to extend a request
        request_id.set(request.request_id)  # type: ignore[attr-defined]
        caller_id.set("")
        request.started_at = perf_counter(), thread_time()  # type: ignore[attr-defined]

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        response["X-Request-ID"] = getattr(request, "request_id", "-")
        match, method = request.resolver_match, request.method or ""
        route = match.route if match else "-"
        clock, cpu = getattr(request, "started_at", (perf_counter(), thread_time()))
        took = perf_counter() - clock
        observe_request(method, route, response.status_code, took)
        if request.path not in PROBE_PATHS and not request.path.startswith(settings.STATIC_URL):
            log_request(method, route, response.status_code, took)
        log_if_over_budget(f"{method} {route}", thread_time() - cpu)
        return response


class BodyLimitMiddleware(MiddlewareMixin):
    """Refuses a declared body over settings.MAX_BODY_BYTES before anything reads it."""

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        try:
            declared = int(request.META.get("CONTENT_LENGTH") or 0)
        except ValueError:
            declared = 0
        if declared <= settings.MAX_BODY_BYTES:
            return None
        message = f"The request body is over {settings.MAX_BODY_BYTES} bytes. Send less at once."
        if "text/html" in request.headers.get("Accept", ""):
            return error_response(request, TooLarge(message))
        return JsonResponse(error_body(TooLarge(message)), status=413)


class ProbeMiddleware(MiddlewareMixin):
    """Answers probes and scrapes before the host check and the session.

    Kubernetes, load balancers and Prometheus ask a process by its address, over plain HTTP. A
    browser sends cookies and takes the long way, on which /metrics knows staff.
    """

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if request.path not in PROBE_PATHS or request.COOKIES:
            return None
        match = request.resolver_match = resolve(request.path_info)
        return cast(HttpResponse, match.func(request))


class RequestLimitMiddleware(MiddlewareMixin):
    """Counts what a logged-in browser asks for against its user's limit; REST counts its own."""

    def process_view(self, request: HttpRequest, *_view: Any) -> HttpResponse | None:
        has_session = settings.SESSION_COOKIE_NAME in request.COOKIES
        user_id = request.session.get(SESSION_KEY) if has_session else None
        if user_id is None:
            return None
        allowance = count_request(user_id)
        request.allowance = allowance  # type: ignore[attr-defined]  # as request_id
        try:
            allowance.check()
        except RateLimited as error:
            return error_response(request, error)
        return None

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        allowance = getattr(request, "allowance", None)
        for name, value in allowance.headers.items() if allowance else ():
            response[name] = value
        return response


class ErrorPageMiddleware(MiddlewareMixin):
    """Renders an AceError raised behind a page, or a failed storage, as an error page."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        failed = storage_error(exception)
        if failed is not None:
            log_storage_error(failed, exception)
            # Without session and user, which may be in the storage that failed.
            context = {"request_id": request_id.get(), "error": failed}
            return render(None, "500.html", context, status=failed.status)
        return error_response(request, exception) if isinstance(exception, AceError) else None


def error_response(request: HttpRequest, error: AceError, status: int = 0) -> HttpResponse:
    """The page that shows an error, or under /api/ the JSON body of every other API error."""
    status = status or error.status
    if request.path.startswith("/api/"):
        response: HttpResponse = JsonResponse(error_body(error), status=status)
    else:
        response = render(request, "error.html", {"error": error, "status": status}, status=status)
    for name, value in error.headers.items():
        response[name] = value
    return response


class HtmxLoginMiddleware(MiddlewareMixin):
    """Answers a poll after logout with a page reload, which leads to the login.

    Otherwise htmx would follow the redirect and swap the login into the middle of the page.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        if "HX-Request" not in request.headers:
            return response
        if not response.headers.get("Location", "").startswith(resolve_url(settings.LOGIN_URL)):
            return response
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
