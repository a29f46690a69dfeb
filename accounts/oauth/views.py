"""The page where a user consents to an app."""

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.oauth.authorization import (
    AuthorizationError,
    AuthorizationRequest,
    deny,
    issue_code,
    parse_authorization_request,
)
from accounts.oauth.clients import is_metadata_document_id, refresh_client_metadata
from accounts.oauth.connections import connect_app
from accounts.oauth.endpoints import contains_nul, require_oauth_enabled
from accounts.oauth.redirect_uris import display_host, form_action, is_loopback
from core.errors import Invalid
from core.http.forms import ServiceForm
from core.http.reauthentication import ask_to_reauthenticate
from core.http.requests import UserRequest
from core.security.scopes import SCOPE_TEXTS


class ConsentForm(ServiceForm):
    """Which of the requested scopes the user consents to."""

    scopes = forms.MultipleChoiceField(
        label="Allow it to",
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Select at least one, or cancel."},
    )

    def __init__(self, wanted: AuthorizationRequest, data: QueryDict | None) -> None:
        super().__init__(data, initial={"scopes": wanted.offered})
        field = self.fields["scopes"]
        assert isinstance(field, forms.MultipleChoiceField)  # noqa: S101 - narrows the type
        field.choices = [(scope.value, SCOPE_TEXTS[scope]) for scope in wanted.offered]


@never_cache
@require_oauth_enabled
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def authorize(request: UserRequest) -> HttpResponseBase:
    """Ask the user who came from an app for consent; a POST to the same URL decides.

    Login comes first: for anonymous visitors no metadata is fetched, and none is sent elsewhere.
    """
    if contains_nul(request.GET):
        raise Invalid("The URL is malformed.", code="bad_app_request")
    client_id = request.GET.get("client_id", "")
    if is_metadata_document_id(client_id):
        refresh_client_metadata(client_id=client_id, user_id=str(request.user.pk))
    try:
        wanted = parse_authorization_request(request)
    except AuthorizationError as error:
        return _report_error(request, error)
    if again := ask_to_reauthenticate(request):
        return again
    if request.POST.get("answer") == "deny":
        return redirect_303(deny(request, wanted))
    form = ConsentForm(wanted, request.POST if request.method == "POST" else None)
    if form.is_valid():
        scopes, host = form.cleaned_data["scopes"], display_host(wanted.redirect_uri)
        connect_app(user=request.user, client=wanted.client, redirect_host=host, scopes=scopes)
        return redirect_303(issue_code(request, wanted, scopes))
    return consent_page(request, wanted, form)


def _report_error(request: HttpRequest, error: AuthorizationError) -> HttpResponseBase:
    """Send the error to the app; to another host only by a click of the user.

    Anyone can register a redirect URI: a crafted link would lead from here to any site.
    """
    if is_loopback(error.location):
        return redirect_303(error.location)
    context = {"location": error.location, "host": display_host(error.location)}
    return render(request, "accounts/oauth_error.html", context, status=400)


def consent_page(
    request: HttpRequest, wanted: AuthorizationRequest, form: ConsentForm
) -> HttpResponse:
    client_id = str(wanted.client.client_id)
    context = {
        "form": form,
        "name": wanted.client.name,
        "redirect_host": display_host(wanted.redirect_uri),
        "is_local": is_loopback(wanted.redirect_uri),
        "document_host": display_host(client_id) if is_metadata_document_id(client_id) else "",
    }
    response = render(request, "accounts/oauth_consent.html", context, status=form.status)
    # Browsers also apply form-action to the redirect after the form: allow this one only.
    allowed = {"form-action": [form_action(wanted.redirect_uri)]}
    response._csp_update = allowed  # type: ignore[attr-defined]  # django-csp's documented hook
    return response


def redirect_303(location: str) -> HttpResponse:
    """Redirect to a validated URL; 303, so that the browser does not POST there."""
    response = HttpResponse(status=303)
    response["Location"] = location
    return response
