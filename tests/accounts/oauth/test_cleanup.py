"""Expired tokens, idle connections and unused clients are deleted."""

from datetime import timedelta

import pytest
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, Grant, RefreshToken

from accounts.models import ConnectedApp
from accounts.oauth.connections import clear_oauth, clear_oauth_if_due, disconnect_app
from core.models import AuditEntry
from tests.harness.oauth_client import OAuthClient, register, who

pytestmark = pytest.mark.postgres

LONG_AGO = timedelta(days=60)


def test_a_client_that_was_never_connected_is_deleted_after_a_day(app: OAuthClient) -> None:
    app.tokens()
    old, fresh = (register().json()["client_id"] for _ in range(2))
    Application.objects.exclude(client_id=fresh).update(created=timezone.now() - LONG_AGO)
    Application.objects.filter(client_id=old).update(updated=timezone.now() - LONG_AGO)
    assert clear_oauth() == {"connections": 0, "clients": 1}
    left = set(Application.objects.values_list("client_id", flat=True))
    assert left == {app.client_id, fresh}
    assert old not in left


def test_a_client_that_was_connected_is_kept_for_ninety_days(app: OAuthClient) -> None:
    disconnect_app(app=connect(app), by=app.user)
    Application.objects.update(created=timezone.now() - LONG_AGO)
    assert clear_oauth()["clients"] == 0
    Application.objects.update(updated=timezone.now() - 2 * LONG_AGO)
    assert clear_oauth()["clients"] == 1


def connect(app: OAuthClient) -> ConnectedApp:
    app.tokens()
    return ConnectedApp.objects.get()


def test_a_client_created_by_staff_stays(db: None) -> None:
    made = Application.objects.create(name="by hand", redirect_uris="https://a.example/")
    Application.objects.update(created=timezone.now() - LONG_AGO)
    clear_oauth()
    assert Application.objects.get() == made


def test_what_is_in_use_stays(app: OAuthClient) -> None:
    pair = app.tokens()
    code = app.code()
    clear_oauth()
    assert who(pair["access_token"])
    assert app.redeem(code).status_code == 200
    assert app.refresh(pair["refresh_token"]).status_code == 200


def test_a_connection_ends_when_its_last_token_has_expired(app: OAuthClient) -> None:
    app.refresh(app.tokens()["refresh_token"])
    app.code()
    AccessToken.objects.update(expires=timezone.now() - LONG_AGO)
    RefreshToken.objects.exclude(revoked=None).update(revoked=timezone.now() - LONG_AGO)
    Grant.objects.update(expires=timezone.now() - LONG_AGO)
    assert clear_oauth() == {"connections": 1, "clients": 0}
    for model in (AccessToken, RefreshToken, Grant, ConnectedApp):
        assert not model.objects.exists()
    assert AuditEntry.objects.get(action="disconnect_app").actor == ""


def test_a_used_refresh_token_still_detects_reuse_after_cleanup(app: OAuthClient) -> None:
    first = app.tokens()
    second = app.refresh(first["refresh_token"]).json()
    clear_oauth()
    app.refresh(first["refresh_token"])
    assert app.refresh(second["refresh_token"]).status_code == 400


def test_the_sweep_clears_once_an_hour(app: OAuthClient) -> None:
    clear_oauth_if_due()
    app.code()
    Grant.objects.update(expires=timezone.now() - LONG_AGO)
    clear_oauth_if_due()
    assert Grant.objects.exists()
