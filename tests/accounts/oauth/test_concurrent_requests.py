"""Parallel requests with one code or token: one wins, reuse revokes its tokens."""

from typing import Any

import pytest
from oauth2_provider.models import AccessToken, RefreshToken

from core.errors import NotAuthenticated
from tests.factories import make_user
from tests.harness.concurrency import run_concurrently
from tests.harness.oauth_client import OAuthClient, who

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def app(transactional_db: None) -> OAuthClient:
    return OAuthClient(make_user("alice@example.org"))


def one_won(answers: list[Any]) -> dict[str, Any]:
    """The pair of the only answer that is one; the others are refusals."""
    won = [answer.json() for answer in answers if answer.status_code == 200]
    refused = [answer.json()["error"] for answer in answers if answer.status_code == 400]
    assert (len(won), refused) == (1, ["invalid_grant"] * (len(answers) - 1))
    pair: dict[str, Any] = won[0]
    return pair


def test_one_of_eight_refreshes_wins_and_reuse_revokes_its_tokens(app: OAuthClient) -> None:
    refresh = app.tokens()["refresh_token"]
    pair = one_won(run_concurrently(8, lambda _: app.refresh(refresh)))
    with pytest.raises(NotAuthenticated):
        who(pair["access_token"])
    assert not RefreshToken.objects.filter(revoked=None).exists()
    assert not AccessToken.objects.exists()


def test_one_of_eight_redeems_the_code_and_reuse_revokes_its_tokens(app: OAuthClient) -> None:
    code = app.code()
    pair = one_won(run_concurrently(8, lambda _: app.redeem(code)))
    assert app.refresh(pair["refresh_token"]).status_code == 400
    assert not AccessToken.objects.exists()


def test_reuse_also_revokes_a_pair_issued_meanwhile(app: OAuthClient) -> None:
    first = app.tokens()
    second = app.refresh(first["refresh_token"]).json()
    tokens = [first["refresh_token"], second["refresh_token"]] * 4
    run_concurrently(8, lambda number: app.refresh(tokens[number]))
    assert not RefreshToken.objects.filter(revoked=None).exists()
    assert not AccessToken.objects.exists()


def test_disconnecting_beats_every_refresh(app: OAuthClient) -> None:
    refresh = app.tokens()["refresh_token"]
    address = f"/keys/apps/{app.user.connected_apps.get().pk}/disconnect"
    run_concurrently(
        4, lambda number: app.browser.post(address) if number else app.refresh(refresh)
    )
    assert not RefreshToken.objects.exists()
    assert not AccessToken.objects.exists()
