"""The way through as a client goes it, and what comes of it."""

import pytest
from oauth2_provider.models import AccessToken, Grant, RefreshToken

from accounts.keys.credentials import principal_for_bearer
from accounts.keys.key_format import digest
from accounts.models import ConnectedApp, User
from core.errors import NotAuthenticated
from core.models import AuditEntry
from core.security.scopes import Scope
from tests.harness.oauth_client import (
    CALLBACK,
    ORIGIN,
    RESOURCE,
    OAuthClient,
    query_of,
    register,
    who,
)


def test_a_person_lets_an_app_in_and_its_token_is_theirs_without_the_account(
    app: OAuthClient,
) -> None:
    pair = app.tokens()
    principal = who(pair["access_token"])
    assert principal.user == app.user
    assert principal.scopes == {Scope.READ, Scope.WRITE, Scope.EVOLVE}
    assert principal.app == ConnectedApp.objects.get()
    assert (pair["token_type"], pair["scope"], pair["expires_in"]) == (
        "Bearer",
        "read write evolve",
        900,
    )


def test_the_answer_carries_state_and_issuer(app: OAuthClient) -> None:
    response = app.consent()
    assert (response.status_code, response["Cache-Control"]) == (
        303,
        "max-age=0, no-cache, no-store, must-revalidate, private",
    )
    assert response["Location"].startswith(f"{CALLBACK}?")
    said = query_of(response["Location"])
    assert (said["state"], said["iss"]) == ("st4te", ORIGIN)


def test_no_is_an_answer(app: OAuthClient) -> None:
    said = query_of(app.consent(answer="deny")["Location"])
    assert (said["error"], said["state"], said["iss"]) == ("access_denied", "st4te", ORIGIN)
    assert not Grant.objects.exists()
    assert not ConnectedApp.objects.exists()


def test_the_person_may_agree_to_less(app: OAuthClient) -> None:
    pair = app.tokens(scopes="read")
    assert pair["scope"] == "read"
    assert who(pair["access_token"]).scopes == {Scope.READ}


def test_agreeing_to_nothing_is_asked_again(app: OAuthClient) -> None:
    response = app.consent(scopes="")
    assert response.status_code == 422
    assert "Select at least one" in response.content.decode()


def test_an_app_that_asks_for_nothing_in_particular_cannot_spend_money(app: OAuthClient) -> None:
    page = app.browser.get(app.address(scope=None)).content.decode()
    assert 'value="write"' in page
    assert 'value="evolve"' not in page


def test_an_address_left_out_is_the_only_one_registered(app: OAuthClient) -> None:
    code = query_of(app.consent(redirect_uri=None)["Location"])["code"]
    assert app.redeem(code).status_code == 200


@pytest.mark.parametrize("given", [RESOURCE, f"{RESOURCE}/", ORIGIN, f"{ORIGIN}/", None])
def test_every_token_is_for_mcp(app: OAuthClient, given: str | None) -> None:
    pair = app.tokens(resource=given)
    assert who(pair["access_token"]).user == app.user
    assert AccessToken.objects.get().resource == [RESOURCE]


def test_a_program_on_this_machine_may_listen_on_any_port(app: OAuthClient) -> None:
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


def test_a_client_with_a_secret_has_to_show_it(alice: User) -> None:
    made = register(token_endpoint_auth_method="client_secret_post").json()
    app = OAuthClient(alice, made["client_id"])
    assert app.redeem(app.code()).json()["error"] == "invalid_client"
    assert app.redeem(app.code(), client_secret="wrong").json()["error"] == "invalid_client"
    answer = app.redeem(app.code(), client_secret=made["client_secret"])
    assert answer.status_code == 200
