"""Failed logins are throttled by source; no account is locked."""

import pytest
from django.core import signing

from accounts.models import LoginAttempts, User
from accounts.services import login_throttling
from accounts.services.login_throttling import (
    FREE_ATTEMPTS,
    MAX_DELAY_SECONDS,
    LoginSource,
    count_login_attempt,
    reset_login_attempts,
)
from core.errors import RateLimited
from tests.factories import PASSWORD
from tests.harness.concurrency import run_concurrently

pytestmark = pytest.mark.postgres

HERE, NEAR, FAR = (LoginSource(a) for a in ("192.0.2.1", "192.0.2.200", "198.51.100.1"))
WHO = "alice@example.org"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the delays see: a list of one number."""
    now = [1_000_000.0]
    monkeypatch.setattr("accounts.services.login_throttling.time.time", lambda: now[0])
    return now


def attempt(source: LoginSource = HERE, account: str = WHO) -> int:
    """0, or the seconds that this attempt has to wait."""
    try:
        count_login_attempt(account=account, source=source)
    except RateLimited as refused:
        return int(refused.headers["Retry-After"])
    return 0


def test_delays_double_from_a_second_to_a_quarter_of_an_hour(db: None, clock: list[float]) -> None:
    waits = []
    for _ in range(16):
        assert attempt() == 0
        waits.append(wait := attempt())
        clock[0] += wait
    grown = [wait for wait in waits if wait]
    assert grown[:4] == [2, 3, 5, 9]
    assert max(grown) == grown[-1] == MAX_DELAY_SECONDS + 1


def test_the_first_attempts_are_not_delayed(db: None, clock: list[float]) -> None:
    assert [bool(attempt()) for _ in range(FREE_ATTEMPTS + 1)] == [False] * FREE_ATTEMPTS + [True]


def test_a_network_counts_as_one_and_another_does_not(db: None, clock: list[float]) -> None:
    for _ in range(FREE_ATTEMPTS):
        attempt(HERE)
    assert attempt(NEAR)
    assert not attempt(FAR)
    assert not attempt(HERE, "charlie@example.org")


def test_a_known_browser_is_not_delayed_by_others(alice: User, clock: list[float]) -> None:
    known = LoginSource(
        HERE.address,
        login_throttling.read_device_cookie(login_throttling.make_device_cookie(alice), WHO),
    )
    for _ in range(FREE_ATTEMPTS):
        attempt(HERE)
    assert attempt(HERE)
    assert not attempt(known)


def test_a_new_password_makes_browsers_unknown(alice: User) -> None:
    cookie = login_throttling.make_device_cookie(alice)
    alice.set_password("another " + PASSWORD)
    alice.save()
    assert not login_throttling.read_device_cookie(cookie, WHO)
    assert login_throttling.read_device_cookie(login_throttling.make_device_cookie(alice), WHO)


def test_a_browser_is_known_to_its_own_account_only(alice: User, charlie: User) -> None:
    cookie = login_throttling.make_device_cookie(alice)
    assert login_throttling.read_device_cookie(cookie, WHO.upper())
    assert not login_throttling.read_device_cookie(cookie, "charlie@example.org")
    assert not login_throttling.read_device_cookie(cookie[:-2], WHO)
    assert not login_throttling.read_device_cookie("x", WHO)
    assert not login_throttling.read_device_cookie(
        signing.dumps(["x", "y"], salt=login_throttling.DEVICE.salt), WHO
    )


def test_a_success_or_a_day_resets_the_failures(db: None, clock: list[float]) -> None:
    for _ in range(FREE_ATTEMPTS):
        attempt()
    reset_login_attempts(account=WHO, source=HERE)
    assert not attempt()
    for _ in range(FREE_ATTEMPTS):
        attempt()
    clock[0] += login_throttling.REMEMBERED_SECONDS + MAX_DELAY_SECONDS
    assert [attempt() for _ in range(3)] == [0, 0, 0]


def test_old_attempts_are_deleted(db: None, clock: list[float]) -> None:
    attempt()
    clock[0] += login_throttling.REMEMBERED_SECONDS + 1
    assert login_throttling.delete_old_login_attempts() == 1
    assert not LoginAttempts.objects.exists()


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("unknown", "unknown"),
    ],
)
def test_a_network_is_a_24_or_a_64(address: str, network: str) -> None:
    assert login_throttling.network_of(address) == network


@pytest.mark.databases
@pytest.mark.django_db(transaction=True)
def test_two_hundred_parallel_guesses_all_count(clock: list[float]) -> None:
    passed = run_concurrently(20, lambda _: sum(not attempt() for _ in range(10)))
    assert sum(passed) == FREE_ATTEMPTS
