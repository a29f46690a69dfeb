"""Listing and disconnecting connected apps."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from oauth2_provider.models import AccessToken, Grant, RefreshToken

from accounts.models import ConnectedApp, User
from core.errors import NotAuthenticated
from core.models import AuditEntry
from playbooks.services import creation as playbooks
from tests.harness.oauth_client import OAuthClient, browser, who


def address_of(app: OAuthClient) -> str:
    return reverse("accounts:disconnect_app", args=[app.user.connected_apps.get().pk])


def test_the_keys_page_lists_them(app: OAuthClient) -> None:
    app.tokens(scopes="read write")
    page = app.browser.get("/keys").content.decode()
    assert "Test agent" in page and "127.0.0.1:9876" in page and "read, write" in page
    assert address_of(app) in page


def test_a_disconnected_app_is_refused_on_the_next_request(app: OAuthClient) -> None:
    pair, code = app.tokens(), app.code()
    assert app.browser.get(address_of(app)).status_code == 200
    assert app.browser.post(address_of(app))["Location"] == "/keys"
    with pytest.raises(NotAuthenticated):
        who(pair["access_token"])
    assert app.refresh(pair["refresh_token"]).json()["error"] == "invalid_grant"
    assert app.redeem(code).json()["error"] == "invalid_grant"
    for model in (ConnectedApp, AccessToken, RefreshToken, Grant):
        assert not model.objects.exists()
    entry = AuditEntry.objects.get(action="disconnect_app")
    assert (entry.actor, entry.detail) == (app.user.email, {"name": "Test agent"})


def test_a_reconnected_app_does_not_revive_old_tokens(app: OAuthClient) -> None:
    old = app.tokens()
    app.browser.post(address_of(app))
    assert who(app.tokens()["access_token"]).user == app.user
    with pytest.raises(NotAuthenticated):
        who(old["access_token"])


def test_another_users_app_is_not_found(app: OAuthClient, charlie: User, staff: User) -> None:
    token = app.tokens()["access_token"]
    for other in (charlie, staff):
        assert browser(other).post(address_of(app)).status_code == 404
    assert browser().post(address_of(app))["Location"].startswith("/login")
    assert who(token)


def test_connections_of_two_users_are_independent(app: OAuthClient, charlie: User) -> None:
    his = OAuthClient(charlie, app.client_id)
    mine, other = app.tokens(), his.tokens(scopes="read")
    app.browser.post(address_of(app))
    assert who(other["access_token"]).user == charlie
    with pytest.raises(NotAuthenticated):
        who(mine["access_token"])


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_an_app_that_revokes_its_token_is_disconnected(app: OAuthClient, kind: str) -> None:
    pair = app.tokens()
    sent = {"token": pair[kind], "client_id": app.client_id}
    answer = browser().post("/oauth/revoke", sent)
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    with pytest.raises(NotAuthenticated):
        who(pair["access_token"])
    assert app.refresh(pair["refresh_token"]).status_code == 400
    assert not ConnectedApp.objects.exists()


def test_a_client_cannot_revoke_anothers_token(app: OAuthClient, charlie: User) -> None:
    token = app.tokens()["access_token"]
    sent = {"token": token, "client_id": OAuthClient(charlie).client_id}
    assert browser().post("/oauth/revoke", sent).status_code == 200
    assert who(token)
    assert browser().post("/oauth/revoke", {"token": token}).status_code == 401


def test_an_unknown_token_is_no_error(app: OAuthClient) -> None:
    sent = {"token": "never heard of", "client_id": app.client_id}
    assert browser().post("/oauth/revoke", sent).status_code == 200


def test_the_last_use_is_recorded_to_the_minute(
    app: OAuthClient, django_assert_num_queries: Any
) -> None:
    token = app.tokens()["access_token"]
    assert app.user.connected_apps.get().last_used_at is None
    who(token)
    used = app.user.connected_apps.get().last_used_at
    assert used is not None and used <= timezone.now()
    with django_assert_num_queries(1):
        who(token)


def test_what_an_app_does_is_in_the_audit_log_under_its_name(app: OAuthClient) -> None:
    by = who(app.tokens()["access_token"])
    playbooks.create_playbook(by=by, name="Made by an app")
    entry = AuditEntry.objects.get(action="create_playbook")
    assert (entry.actor, entry.detail["app"]) == (app.user.email, "Test agent")


class TestStaff:
    """Staff see connections and clients, and end them; no page of theirs holds a secret."""

    @pytest.fixture
    def desk(self, staff: User) -> Client:
        return browser(staff)

    def test_a_connection_can_be_ended(self, desk: Client, app: OAuthClient) -> None:
        token = app.tokens()["access_token"]
        sent = {"action": "disconnect", "_selected_action": [str(app.user.connected_apps.get().pk)]}
        assert desk.post("/admin/accounts/connectedapp/", sent).status_code == 302
        with pytest.raises(NotAuthenticated):
            who(token)

    def test_clients_are_read_only_and_without_secrets(
        self, desk: Client, app: OAuthClient
    ) -> None:
        app.tokens()
        listing = "/admin/oauth2_provider/application/"
        pk = AccessToken.objects.get().application_id
        shown = desk.get(f"{listing}{pk}/change/").content.decode()
        assert desk.get(listing).status_code == 200
        assert AccessToken.objects.get().token_checksum not in shown
        assert RefreshToken.objects.get().token_checksum not in shown
        assert desk.post(f"{listing}{pk}/change/", {"name": "x"}).status_code == 403

    @pytest.mark.parametrize("model", [Grant, AccessToken, RefreshToken])
    def test_codes_and_tokens_are_hidden(self, desk: Client, app: OAuthClient, model: Any) -> None:
        app.tokens()
        app.code()
        listing = f"/admin/oauth2_provider/{model._meta.model_name}/"
        assert desk.get(listing).status_code == 403
        assert desk.get(f"{listing}{model.objects.get().pk}/change/").status_code == 403
        assert listing not in desk.get("/admin/").content.decode()

    def test_the_toolkits_own_pages_are_not_there(self, desk: Client) -> None:
        for path in ("applications", "authorized_tokens", "device", "introspect", "userinfo"):
            for root in ("oauth", "o"):
                assert desk.get(f"/{root}/{path}/").status_code == 404
