"""Home, onboarding, theme, health and metrics endpoints, and the error pages."""

from hmac import compare_digest
from http import HTTPStatus

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.templatetags.static import static
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.mfa.second_factor import has_second_factor, requires_second_factor
from accounts.services.account_settings import finish_onboarding
from config.observability.metrics import render_metrics
from config.observability.readiness import run_checks
from config.web import view_as
from config.web.context_processors import THEME_COOKIE, THEMES
from config.web.middleware import error_response
from config.web.onboarding import onboarding_context, show_onboarding, steps_of
from core.errors import AceError, Forbidden, Invalid
from core.http.requests import UserRequest


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """The landing page; logged-in users are redirected to onboarding or the overview."""
    if request.user.is_authenticated:
        return redirect("onboarding" if show_onboarding(request) else "evolution:overview")
    return render(request, "config/home.html", {"has_demo": settings.DEMO_LOGIN})


@require_POST
def try_demo(request: HttpRequest) -> HttpResponse:
    """Log an anonymous visitor in to the demo account, read-only."""
    if request.user.is_authenticated or view_as.visit_demo(request):
        return redirect("evolution:overview")
    raise Http404


@login_required
@require_safe
def onboarding(request: UserRequest) -> HttpResponse:
    """The checklist; a poll gets its list, or 204 while nothing changed since `seen`."""
    steps = steps_of(request.user)
    context = onboarding_context(
        request.user, steps=steps, mcp_url=request.build_absolute_uri("/mcp")
    )
    if context["all_done"] and show_onboarding(request):
        finish_onboarding(user=request.user, how="done")
    if not request.htmx:
        return render(request, "config/onboarding.html", context)
    if request.GET.get("seen") == context["state"]:
        return HttpResponse(status=204)
    return render(request, "config/onboarding.html#live", context)


@login_required
@require_POST
def dismiss_onboarding(request: UserRequest) -> HttpResponse:
    finish_onboarding(user=request.user, how="dismissed")
    messages.info(request, "First steps hidden. Find them again with “Go to”.")
    return redirect("playbooks:list")


@require_POST
def choose_theme(request: HttpRequest) -> HttpResponse:
    """Store the choice and redirect back."""
    chosen = request.POST.get("theme", "")
    if chosen not in THEMES:
        raise Invalid("Choose system, light or dark.")
    wanted = request.headers.get("Referer", "")
    hosts = {request.get_host()}
    safe = url_has_allowed_host_and_scheme(wanted, hosts, require_https=request.is_secure())
    response = redirect(wanted if safe else "home")
    response.set_cookie(
        THEME_COOKIE,
        chosen,
        max_age=365 * 24 * 3600,
        samesite="Lax",
        secure=settings.HTTPS,
        httponly=True,
    )
    return response


@require_safe
def favicon(request: HttpRequest) -> HttpResponse:
    """For pages without an icon link, such as the admin."""
    return redirect(static("img/favicon.svg"))


@never_cache
@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """Liveness: this process answers, without asking the database."""
    return JsonResponse({"status": "ok"})


@never_cache
@require_safe
def readyz(request: HttpRequest) -> HttpResponse:
    """Readiness: 503 when pages and REST cannot work; a silent worker is only reported."""
    found = run_checks()
    down = any(check["status"] == "failed" for check in found.values())
    body = {"status": "failed" if down else "ok", "checks": found}
    return JsonResponse(body, status=HTTPStatus.SERVICE_UNAVAILABLE if down else HTTPStatus.OK)


@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus metrics, for METRICS_TOKEN as bearer token or for staff."""
    sent = request.headers.get("Authorization", "").removeprefix("Bearer ")
    wanted = settings.METRICS_TOKEN
    if not wanted:
        raise Http404
    if not (compare_digest(sent.encode(), wanted.encode()) or is_staff(request)):
        answer = HttpResponse("Send METRICS_TOKEN as a bearer token.\n", status=401)
        answer["WWW-Authenticate"] = "Bearer"
        return answer
    return HttpResponse(render_metrics(), content_type="text/plain; version=0.0.4; charset=utf-8")


def is_staff(request: HttpRequest) -> bool:
    """Whether the admin is open to the user, second factor included."""
    user = getattr(request, "user", None)  # a scrape has no session
    if user is None or not (user.is_authenticated and user.is_active and user.is_staff):
        return False
    return has_second_factor(user) or not requires_second_factor(user)


def admin_log_in(request: HttpRequest) -> HttpResponse:
    """Redirects staff to the normal login and its rate limit; refuses other users."""
    if request.user.is_authenticated:
        raise Forbidden("This account isn't staff. Log out, then log in with a staff account.")
    wanted = urlencode({"next": request.GET.get("next") or reverse("admin:index")})
    return redirect(f"{reverse('accounts:log_in')}?{wanted}")


@login_required
@require_POST
def stop_viewing(request: UserRequest) -> HttpResponse:
    """Back from a user's pages to that user in the admin."""
    viewed = view_as.stop_viewing(request)
    return redirect("admin:customer", viewed) if viewed else redirect("home")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form without a valid CSRF token: usually an old page, or cookies are disabled."""
    message = "This page expired or cookies are disabled. Go back, reload the page and try again."
    return error_response(request, AceError(message, code="csrf"), 403)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    message = "The server couldn't understand this request. Go back and try again."
    return error_response(request, AceError(message, code="bad_request"), 400)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_response(request, Forbidden("You don't have permission to do this."))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    message = "Page not found, or you don't have access."
    return error_response(request, AceError(message, code="not_found"), 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """The 500 page uses neither database nor session: either may be what failed."""
    request_id = getattr(request, "request_id", "")
    if request.path.startswith("/api/"):
        message = "Something went wrong on our end. Try again, or report the request ID."
        return error_response(request, AceError(message, code="server_error"), 500)
    return render(None, "500.html", {"request_id": request_id}, status=500)
