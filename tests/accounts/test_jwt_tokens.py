"""Access and refresh tokens: short-lived, single-use, in families."""

from datetime import timedelta

import jwt
import pytest
from django.conf import settings as conf
from django.utils import timezone
from pytest_django import Settings

from accounts.keys.authentication import principal_for_bearer
from accounts.keys.jwt_tokens import TokenPair, issue_tokens, refresh_tokens, revoke_tokens
from accounts.models import RefreshToken, User
from core.errors import NotAuthenticated


def test_an_access_token_identifies_its_user(alice: User) -> None:
    pair = issue_tokens(user=alice)
    assert principal_for_bearer(pair.access).user == alice
    assert pair.expires_in == 30 * 60


def test_neither_token_is_stored(alice: User) -> None:
    pair = issue_tokens(user=alice)
    stored = str(list(RefreshToken.objects.values_list()))
    assert pair.refresh not in stored
    assert pair.access not in stored


def test_a_refresh_token_gives_a_working_pair(alice: User) -> None:
    pair = refresh_tokens(refresh=issue_tokens(user=alice).refresh)
    assert principal_for_bearer(pair.access).user == alice
    assert refresh_tokens(refresh=pair.refresh)


def test_a_second_use_revokes_the_whole_family(alice: User) -> None:
    first = issue_tokens(user=alice)
    second = refresh_tokens(refresh=first.refresh)
    for refresh in (first.refresh, second.refresh):
        with pytest.raises(NotAuthenticated):
            refresh_tokens(refresh=refresh)
    with pytest.raises(NotAuthenticated):
        principal_for_bearer(second.access)


def test_reuse_leaves_other_logins_alone(alice: User) -> None:
    other = issue_tokens(user=alice)
    spent = issue_tokens(user=alice)
    refresh_tokens(refresh=spent.refresh)
    with pytest.raises(NotAuthenticated):
        refresh_tokens(refresh=spent.refresh)
    assert principal_for_bearer(other.access).user == alice


def test_logout_revokes_the_tokens_at_once(alice: User) -> None:
    pair = issue_tokens(user=alice)
    revoke_tokens(refresh=pair.refresh)
    refuses_both(pair)


def test_a_changed_password_revokes_all_tokens(alice: User) -> None:
    pair = issue_tokens(user=alice)
    alice.set_password("another long password")
    alice.save()
    refuses_both(pair)


def refuses_both(pair: TokenPair) -> None:
    with pytest.raises(NotAuthenticated):
        principal_for_bearer(pair.access)
    with pytest.raises(NotAuthenticated):
        refresh_tokens(refresh=pair.refresh)


@pytest.mark.parametrize("gone", ["inactive", "deleted"])
def test_a_deleted_or_inactive_user_is_refused(alice: User, gone: str) -> None:
    pair = issue_tokens(user=alice)
    if gone == "deleted":
        alice.delete()
    else:
        User.objects.filter(pk=alice.pk).update(is_active=False)
    refuses_both(pair)


def test_access_and_refresh_tokens_are_not_interchangeable(alice: User) -> None:
    pair = issue_tokens(user=alice)
    with pytest.raises(NotAuthenticated):
        principal_for_bearer(pair.refresh)
    with pytest.raises(NotAuthenticated):
        refresh_tokens(refresh=pair.access)


def test_an_expired_access_token_is_refused(alice: User, settings: Settings) -> None:
    settings.JWT_ACCESS_TOKEN_LIFETIME = timedelta(seconds=-60)
    pair = issue_tokens(user=alice)
    with pytest.raises(NotAuthenticated):
        principal_for_bearer(pair.access)


def test_a_token_from_a_clock_slightly_ahead_is_accepted(alice: User) -> None:
    access = issue_tokens(user=alice).access
    claims = jwt.decode(access, options={"verify_signature": False})
    early = jwt.encode({**claims, "iat": claims["iat"] + 5}, conf.JWT_SECRET_KEY, "HS256")
    assert principal_for_bearer(early).user == alice


def forgeries(access: str) -> list[str]:
    claims = jwt.decode(access, options={"verify_signature": False})
    return [
        jwt.encode(claims, "another key of at least 32 bytes.", algorithm="HS256"),
        jwt.encode(claims, "", algorithm="none"),
        jwt.encode({**claims, "sub": "x"}, conf.JWT_SECRET_KEY, algorithm="HS256"),
        jwt.encode({**claims, "iss": "other"}, conf.JWT_SECRET_KEY, algorithm="HS256"),
        jwt.encode({"sub": claims["sub"]}, conf.JWT_SECRET_KEY, algorithm="HS256"),
        "a.b.c",
        "..",
        "é.é.é",
    ]


def test_forged_and_malformed_tokens_are_refused(alice: User) -> None:
    for token in forgeries(issue_tokens(user=alice).access):
        with pytest.raises(NotAuthenticated):
            principal_for_bearer(token)


def test_expired_tokens_are_deleted_at_the_next_login(alice: User) -> None:
    issue_tokens(user=alice)
    RefreshToken.objects.update(expires_at=timezone.now() - timedelta(days=1))
    issue_tokens(user=alice)
    assert RefreshToken.objects.count() == 1
