"""The authorization code flow of a client, from consent to tokens."""

import pytest
from oauth2_provider.models import AccessToken, Grant, RefreshToken

from accounts.keys.authentication import principal_for_bearer
from accounts.keys.key_format import digest
from accounts.models import ConnectedApp, User
from core.errors import NotAuthenticated
from core.models import AuditEntry
from core.security.scopes import KEY_SCOPES, Scope
from tests.harness.oauth_client import (
    CALLBACK,
    ORIGIN,
    RESOURCE,
    OAuthClient,
    query_of,
    register,
    who,
)


def test_a_connected_app_acts_as_its_user_without_the_account_scope(
    app: OAuthClient,
) -> None:
    pair = app.tokens()
    principal = who(pair["access_token"])
    assert principal.user == app.user
    assert principal.scopes == set(KEY_SCOPES)
    assert principal.app == ConnectedApp.objects.get()
    assert (pair["token_type"], pair["scope"], pair["expires_in"]) == (
        "Bearer",
        "read write evolve",
        900,
    )


def test_the_redirect_has_state_and_issuer(app: OAuthClient) -> None:
    response = app.consent()
    assert (response.status_code, response["Cache-Control"]) == (
        303,
        "max-age=0, no-cache, no-store, must-revalidate, private",
    )
    assert response["Location"].startswith(f"{CALLBACK}?")
    params = query_of(response["Location"])
    assert (params["state"], params["iss"]) == ("st4te", ORIGIN)


def test_denial_is_reported_to_the_app(app: OAuthClient) -> None:
    params = query_of(app.consent(answer="deny")["Location"])
    assert (params["error"], params["state"], params["iss"]) == ("access_denied", "st4te", ORIGIN)
    assert not Grant.objects.exists()
    assert not ConnectedApp.objects.exists()


def test_the_user_may_consent_to_fewer_scopes(app: OAuthClient) -> None:
    pair = app.tokens(scopes="read")
    assert pair["scope"] == "read"
    assert who(pair["access_token"]).scopes == {Scope.READ}


def test_consenting_to_no_scope_shows_the_form_again(app: OAuthClient) -> None:
    response = app.consent(scopes="")
    assert response.status_code == 422
    assert "Select at least one" in response.content.decode()


def test_the_default_scopes_cannot_edit_or_spend_money(app: OAuthClient) -> None:
    page = app.browser.get(app.address(scope=None)).content.decode()
    assert 'value="report"' in page
    assert 'value="write"' not in page
    assert 'value="evolve"' not in page


def test_an_app_that_asks_to_write_can_be_let_report_only(app: OAuthClient) -> None:
    pair = app.tokens(scopes="report")
    assert who(pair["access_token"]).scopes == {Scope.READ, Scope.REPORT}


def test_an_omitted_redirect_uri_is_the_only_registered_one(app: OAuthClient) -> None:
    code = query_of(app.consent(redirect_uri=None)["Location"])["code"]
    assert app.redeem(code).status_code == 200


@pytest.mark.parametrize("given", [RESOURCE, f"{RESOURCE}/", ORIGIN, f"{ORIGIN}/", None])
def test_every_token_is_for_mcp(app: OAuthClient, given: str | None) -> None:
    pair = app.tokens(resource=given)
    assert who(pair["access_token"]).user == app.user
    assert AccessToken.objects.get().resource == [RESOURCE]


def test_a_loopback_redirect_may_use_any_port(app: OAuthClient) -> None:
    here = "http://127.0.0.1:61234/callback"
    assert app.consent(redirect_uri=here)["Location"].startswith(here)


def test_no_usable_credential_is_stored(app: OAuthClient) -> None:
    code = app.code()
    assert Grant.objects.get().code == digest(code)
    pair = app.redeem(code).json()
    access, refresh = AccessToken.objects.get(), RefreshToken.objects.get()
    assert (access.token, refresh.token) == ("", "")
    assert access.token_checksum == digest(pair["access_token"])
    assert refresh.token_checksum == digest(pair["refresh_token"])


def test_connecting_is_in_the_audit_log(app: OAuthClient) -> None:
    app.tokens(scopes="read write")
    entry = AuditEntry.objects.get(action="connect_app")
    assert (entry.actor, entry.owner_id) == (app.user.email, app.user.pk)
    assert entry.detail == {
        "name": "Test agent",
        "redirect_host": "127.0.0.1:9876",
        "scopes": "read write",
    }


def test_an_app_token_works_at_no_other_interface(app: OAuthClient) -> None:
    with pytest.raises(NotAuthenticated):
        principal_for_bearer(app.tokens()["access_token"])


def test_a_confidential_client_must_authenticate(alice: User) -> None:
    made = register(token_endpoint_auth_method="client_secret_post").json()
    app = OAuthClient(alice, made["client_id"])
    assert app.redeem(app.code()).json()["error"] == "invalid_client"
    assert app.redeem(app.code(), client_secret="wrong").json()["error"] == "invalid_client"
    answer = app.redeem(app.code(), client_secret=made["client_secret"])
    assert answer.status_code == 200
