"""Registration and login reveal no accounts."""

from unittest.mock import patch

import pytest
from pytest_django import Settings

from accounts.models import User
from accounts.services import login
from accounts.services.login import register_user
from core.errors import Invalid, RateLimited, WrongCredentials
from tests.factories import PASSWORD

SITE = "https://ace.example"
HASHES = "django.contrib.auth.hashers.MD5PasswordHasher.encode"


def register(email: str, password: str = PASSWORD) -> None:
    register_user(email=email, password=password, address="192.0.2.1", site=SITE)


def log_in(email: str, password: str = PASSWORD) -> User:
    return login.log_in(email=email, password=password, address="192.0.2.1", site=SITE)


def test_login_ignores_the_case_of_the_address(db: None) -> None:
    register(" Dora@Example.org ")
    assert log_in("DORA@example.org").email == "dora@example.org"


def test_registering_a_known_address_changes_nothing(alice: User) -> None:
    register(alice.email, "another long password")
    assert User.objects.count() == 1
    assert log_in(alice.email).pk == alice.pk


def test_a_known_and_a_new_address_cost_the_same_hashes(alice: User) -> None:
    counts = []
    for email in (alice.email, "new@example.org"):
        with patch(HASHES, return_value="md5$salt$hash") as hasher:
            register(email)
        counts.append(hasher.call_count)
    assert counts == [1, 1]


@pytest.mark.parametrize(
    "password", ["short", "12345678901234", "password1234", "dora@example.org"]
)
def test_a_weak_password_is_refused_with_its_field(db: None, password: str) -> None:
    with pytest.raises(Invalid) as refused:
        register("dora@example.org", password)
    assert list(refused.value.fields) == ["password"]


@pytest.mark.parametrize("email", ["", "dora", "dora@", "a" * 250 + "@example.org", "d\x00@x.org"])
def test_an_invalid_address_is_refused_with_its_field(db: None, email: str) -> None:
    with pytest.raises(Invalid) as refused:
        register(email)
    assert list(refused.value.fields) == ["email"]


def test_a_wrong_password_and_an_unknown_address_get_the_same_response(alice: User) -> None:
    errors = []
    for email in (alice.email, "nobody@example.org"):
        with pytest.raises(WrongCredentials) as refused:
            log_in(email, "not the password")
        errors.append((refused.value.code, refused.value.message))
    assert errors[0] == errors[1]


def test_an_unknown_address_costs_a_hash_like_a_known_one(alice: User) -> None:
    counts = []
    for email in (alice.email, "nobody@example.org"):
        with patch(HASHES, return_value="md5$salt$hash") as hasher, pytest.raises(WrongCredentials):
            log_in(email, "not the password")
        counts.append(hasher.call_count)
    assert counts == [1, 1]


def test_an_inactive_user_cannot_log_in(alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_active=False)
    with pytest.raises(WrongCredentials):
        log_in(alice.email)


def test_logins_are_limited_per_address(alice: User, settings: Settings) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"log_in": "2/h"}
    for _ in range(2):
        log_in(alice.email)
    with pytest.raises(RateLimited) as refused:
        log_in(alice.email)
    assert 1 <= int(refused.value.headers["Retry-After"]) <= 3600
    login.log_in(email=alice.email, password=PASSWORD, address="192.0.2.2", site=SITE)


def test_registrations_are_limited_per_address(db: None, settings: Settings) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"register": "1/h"}
    register("one@example.org")
    with pytest.raises(RateLimited):
        register("two@example.org")
    assert not User.objects.filter(email="two@example.org").exists()
