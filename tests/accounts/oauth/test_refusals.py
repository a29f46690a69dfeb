"""Requests that the authorization server refuses."""

from datetime import timedelta

import pytest
from django.utils import timezone
from oauth2_provider.models import AccessToken, Grant, RefreshToken
from pytest_django import Settings

from accounts.models import ConnectedApp, User
from core.errors import NotAuthenticated
from core.models import AuditEntry
from core.security.scopes import Scope
from tests.harness.clients import log_in_client
from tests.harness.oauth_client import (
    CALLBACK,
    RESOURCE,
    VERIFIER,
    OAuthClient,
    browser,
    query_of,
    register,
    who,
)
from tests.harness.rate_limit_windows import frozen_rate_window as frozen_rate_window

OTHER = "https://other.example/mcp"


def error_of(app: OAuthClient, **changes: object) -> str:
    """The error in the redirect to the app for these parameters."""
    location = app.browser.get(app.address(**changes))["Location"]
    assert location.startswith(f"{CALLBACK}?")
    return query_of(location)["error"]


@pytest.mark.parametrize(
    "changes",
    [
        {"code_challenge_method": "plain"},
        {"code_challenge_method": None},
        {"code_challenge": None, "code_challenge_method": None},
        {"code_challenge": "short"},
        {"code_challenge_method": "S512"},
    ],
)
def test_only_s256_challenges_are_accepted(
    app: OAuthClient, changes: dict[str, str | None]
) -> None:
    assert error_of(app, **changes) == "invalid_request"


@pytest.mark.parametrize("verifier", ["w" * 50, "", None, "v" * 49])
def test_a_code_is_refused_without_its_verifier(app: OAuthClient, verifier: str | None) -> None:
    answer = app.redeem(app.code(), code_verifier=verifier)
    assert answer.status_code == 400
    assert not AccessToken.objects.exists()


@pytest.mark.parametrize("scope", ["account", "read account", "admin", "read write evolve account"])
def test_unknown_scopes_are_refused(app: OAuthClient, scope: str) -> None:
    assert error_of(app, scope=scope) == "invalid_scope"


def test_a_user_cannot_grant_scopes_that_were_not_requested(app: OAuthClient) -> None:
    response = app.consent(scope="read", scopes="read write account")
    assert response.status_code == 422
    assert not ConnectedApp.objects.exists()


def test_a_refresh_cannot_widen_the_scopes(app: OAuthClient) -> None:
    pair = app.tokens(scopes="read")
    answer = app.refresh(pair["refresh_token"], scope="read write")
    assert answer.json()["error"] == "invalid_scope"


def test_a_refresh_narrows_the_scopes_for_good(app: OAuthClient) -> None:
    wide = app.tokens(scopes="read write")
    narrow = app.refresh(wide["refresh_token"], scope="read report").json()
    assert who(narrow["access_token"]).scopes == {Scope.READ, Scope.REPORT}
    assert ConnectedApp.objects.get().scopes == ["read", "report"]
    with pytest.raises(NotAuthenticated):
        who(wide["access_token"])
    answer = app.refresh(narrow["refresh_token"], scope="read write")
    assert answer.json()["error"] == "invalid_scope"
    later = app.refresh(narrow["refresh_token"]).json()
    assert later["scope"] == "read report"
    assert who(later["access_token"]).scopes == {Scope.READ, Scope.REPORT}


def test_a_narrowed_refresh_leaves_the_apps_other_tokens(app: OAuthClient) -> None:
    first, other = app.tokens(scopes="read write"), app.tokens(scopes="read write")
    assert app.refresh(first["refresh_token"], scope="read").json()["scope"] == "read"
    assert Scope.WRITE in who(other["access_token"]).scopes


def test_a_later_and_narrower_consent_narrows_earlier_tokens(app: OAuthClient) -> None:
    first = app.tokens()
    app.tokens(scopes="read")
    assert who(first["access_token"]).scopes == {Scope.READ}
    assert app.refresh(first["refresh_token"]).json()["scope"] == "read"


def test_anonymous_visitors_are_not_redirected_to_an_app(app: OAuthClient) -> None:
    """Anybody may register a redirect: our address must not lead a passer-by there."""
    uri = "https://elsewhere.example/x"
    client_id = register(redirect_uris=[uri]).json()["client_id"]
    address = app.address(client_id=client_id, redirect_uri=uri, response_type="token")
    answer = browser().get(address)
    assert f'href="{uri}' in app.browser.get(address).content.decode()
    assert answer["Location"].startswith("/login?next=/oauth/authorize")


@pytest.mark.parametrize("kind", ["token", "id_token", "code token", "nonsense", None])
def test_other_response_types_are_refused(app: OAuthClient, kind: str | None) -> None:
    assert error_of(app, response_type=kind) in {
        "unsupported_response_type",
        "unauthorized_client",
        "invalid_request",
    }


@pytest.mark.parametrize("grant", ["password", "client_credentials", "implicit", "x", None])
def test_other_grant_types_are_refused(app: OAuthClient, grant: str | None) -> None:
    answer = app.token(grant_type=grant, username=app.user.email, password="x")
    assert answer.json()["error"] in {"unsupported_grant_type", "invalid_request"}


@pytest.mark.parametrize(
    "given", [OTHER, "http://localhost:8000/other", "not a url", [RESOURCE, OTHER], "http://["]
)
def test_another_resource_cannot_be_requested(app: OAuthClient, given: str | list[str]) -> None:
    assert error_of(app, resource=given) == "invalid_target"


def test_a_code_cannot_be_exchanged_for_another_resource(app: OAuthClient) -> None:
    assert app.redeem(app.code(), resource=OTHER).json()["error"] == "invalid_target"
    refresh = app.tokens()["refresh_token"]
    assert app.refresh(refresh, resource=OTHER).json()["error"] == "invalid_target"


def test_a_token_for_another_resource_is_refused(app: OAuthClient) -> None:
    token = app.tokens()["access_token"]
    for elsewhere in ("127.0.0.1:8000", "localhost", "localhost:8001"):
        with pytest.raises(NotAuthenticated):
            who(token, host=elsewhere)
    AccessToken.objects.update(resource=[])
    with pytest.raises(NotAuthenticated):
        who(token)


@pytest.mark.parametrize(
    "uri",
    [
        "https://evil.example/",
        "http://127.0.0.1:9876/callback/../evil",
        "http://127.0.0.1:9876/callback?x=1",
        "http://127.0.0.1:9876/callback#x",
        "http://user@127.0.0.1:9876/callback",
        "http://127.0.0.1.evil.example:9876/callback",
        "http://localhost:9876/callback",
        "//evil.example/callback",
        "javascript:alert(1)",
        "http://127.0.0.1:9876/callback\r\nSet-Cookie: a=b",
    ],
)
def test_an_unregistered_redirect_uri_is_never_redirected_to(app: OAuthClient, uri: str) -> None:
    for response in (app.browser.get(app.address(redirect_uri=uri)), app.consent(redirect_uri=uri)):
        assert response.status_code == 400
        assert "Location" not in response


def test_an_unknown_client_gets_a_page_and_no_redirect(app: OAuthClient) -> None:
    for client_id in ("unknown", "a\x00b", "", None):
        response = app.browser.get(app.address(client_id=client_id))
        assert (response.status_code, "Location" in response) == (400, False)


@pytest.mark.parametrize("name", ["client_id", "redirect_uri", "scope", "state", "response_type"])
def test_repeated_parameters_are_refused(app: OAuthClient, name: str) -> None:
    address = f"{app.address()}&{name}=twice"
    assert app.browser.get(address).status_code == 400


def test_a_code_is_refused_for_another_client(app: OAuthClient, charlie: User) -> None:
    code = app.code()
    assert OAuthClient(charlie).redeem(code).json()["error"] == "invalid_grant"


def test_a_code_is_bound_to_its_redirect_uri(app: OAuthClient) -> None:
    answer = app.redeem(app.code(), redirect_uri="http://127.0.0.1:1/callback")
    assert answer.status_code == 400


def test_a_code_expires_after_a_minute(app: OAuthClient) -> None:
    code = app.code()
    Grant.objects.update(expires=timezone.now())
    assert app.redeem(code).json()["error"] == "invalid_grant"


def test_a_code_used_twice_revokes_its_tokens(app: OAuthClient) -> None:
    code = app.code()
    pair = app.redeem(code).json()
    renewed = app.refresh(pair["refresh_token"]).json()
    assert app.redeem(code).json()["error"] == "invalid_grant"
    with pytest.raises(NotAuthenticated):
        who(renewed["access_token"])
    assert app.refresh(renewed["refresh_token"]).json()["error"] == "invalid_grant"
    assert AuditEntry.objects.filter(action="end_app_sign_in").count() == 1


def test_a_refresh_token_used_twice_revokes_its_family(app: OAuthClient) -> None:
    first = app.tokens()
    second = app.refresh(first["refresh_token"]).json()
    assert who(second["access_token"])
    with pytest.raises(NotAuthenticated):
        who(first["access_token"])
    assert app.refresh(first["refresh_token"]).json()["error"] == "invalid_grant"
    with pytest.raises(NotAuthenticated):
        who(second["access_token"])
    assert app.refresh(second["refresh_token"]).json()["error"] == "invalid_grant"


def test_reuse_revokes_one_family_only(app: OAuthClient) -> None:
    mine, other = app.tokens(), app.tokens()
    app.refresh(mine["refresh_token"])
    app.refresh(mine["refresh_token"])
    assert who(other["access_token"])


def test_a_refresh_token_is_refused_for_another_client(app: OAuthClient, charlie: User) -> None:
    refresh = app.tokens()["refresh_token"]
    assert OAuthClient(charlie).refresh(refresh).json()["error"] == "invalid_grant"
    assert app.refresh(refresh).status_code == 200


def test_token_requests_are_rate_limited(
    app: OAuthClient, settings: Settings, frozen_rate_window: None
) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"oauth_token": "2/m"}
    pair = app.tokens()
    assert app.refresh("made up").status_code == 400
    refused = app.refresh(pair["refresh_token"])
    assert (refused.status_code, refused.json()["error"]) == (429, "temporarily_unavailable")
    assert 0 < int(refused["Retry-After"]) <= 60
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"oauth_token": "9/m"}
    assert app.refresh(pair["refresh_token"]).status_code == 200


def test_an_expired_token_is_refused(app: OAuthClient) -> None:
    pair = app.tokens()
    AccessToken.objects.update(expires=timezone.now())
    with pytest.raises(NotAuthenticated):
        who(pair["access_token"])
    AccessToken.objects.update(expires=timezone.now() - timedelta(days=31))
    assert app.refresh(pair["refresh_token"]).json()["error"] == "invalid_grant"


def test_tokens_of_an_inactive_user_are_refused(app: OAuthClient) -> None:
    pair, code = app.tokens(), app.code()
    User.objects.filter(pk=app.user.pk).update(is_active=False)
    with pytest.raises(NotAuthenticated):
        who(pair["access_token"])
    assert app.refresh(pair["refresh_token"]).json()["error"] == "invalid_grant"
    assert app.redeem(code).json()["error"] == "invalid_grant"


def test_a_deleted_user_leaves_no_token(app: OAuthClient) -> None:
    token = app.tokens()["access_token"]
    app.user.delete()
    with pytest.raises(NotAuthenticated):
        who(token)
    assert not RefreshToken.objects.exists()


def test_consent_requires_login(app: OAuthClient) -> None:
    nobody = browser()
    for response in (nobody.get(app.address()), nobody.post(app.address(), {"answer": "allow"})):
        assert response.status_code == 302
        assert response["Location"].startswith("/login?next=/oauth/authorize%3F")
    assert not Grant.objects.exists()


def test_consent_requires_a_csrf_token(app: OAuthClient) -> None:
    strict = browser(app.user, csrf=True)
    response = strict.post(app.address(), {"answer": "allow", "scopes": ["read"]})
    assert response.status_code == 403
    assert not Grant.objects.exists()


def test_the_posted_body_cannot_change_the_request(app: OAuthClient) -> None:
    other = register(redirect_uris=["https://evil.example/"]).json()["client_id"]
    sent = {"answer": "allow", "scopes": ["read"], "client_id": other, "state": "x"}
    sent |= {"redirect_uri": "https://evil.example/", "code_challenge": "x" * 43}
    location = app.browser.post(app.address(), sent)["Location"]
    assert location.startswith(CALLBACK)
    code = query_of(location)["code"]
    assert app.redeem(code, code_verifier=VERIFIER).status_code == 200


@pytest.mark.parametrize("name", ["client_id", "code", "refresh_token", "resource"])
def test_malformed_parameters_are_refused_without_errors(app: OAuthClient, name: str) -> None:
    for junk in ("a\x00b", "\ud800".encode("utf-8", "replace").decode(), "x" * 5000, "ä" * 50):
        for grant in ("authorization_code", "refresh_token"):
            sent = {"grant_type": grant, "code": "x", "refresh_token": "x", name: junk}
            answer = app.token(**sent)
            assert answer.status_code in {400, 401}
            assert "error" in answer.json()


def test_a_crafted_link_leads_to_another_host_only_by_a_click(alice: User) -> None:
    made = register(redirect_uris=["https://evil.example/callback"]).json()
    app = OAuthClient(alice, made["client_id"])
    address = app.address(redirect_uri="https://evil.example/callback", scope="account")
    answer = app.browser.get(address)
    assert answer.status_code == 400
    assert "Go to evil.example" in answer.content.decode()


def test_consent_asks_for_the_password_again(app: OAuthClient) -> None:
    log_in_client(app.browser, app.user, minutes_ago=6)
    assert "/settings/confirm" in app.browser.get(app.address())["Location"]
    assert "/settings/confirm" in app.consent()["Location"]
