"""Guessing gets slow, from where it is guessed; nobody locks the person out."""

import pytest
from django.core import signing

from accounts import lockout
from accounts.errors import RateLimited
from accounts.lockout import FREE, LONGEST, Source, forget_attempts, take_attempt
from accounts.models import Attempts, User
from tests.concurrency.threads import at_once
from tests.factories import PASSWORD

pytestmark = pytest.mark.databases

HERE, NEAR, FAR = (Source(a) for a in ("192.0.2.1", "192.0.2.200", "198.51.100.1"))
WHO = "alice@example.org"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time that the delays see: a list of one number."""
    now = [1_000_000.0]
    monkeypatch.setattr("accounts.lockout.time.time", lambda: now[0])
    return now


def taken(source: Source = HERE, account: str = WHO) -> int:
    """0, or the seconds that this attempt has to wait."""
    try:
        take_attempt(account=account, source=source)
    except RateLimited as refused:
        return refused.retry_after
    return 0


def test_delays_double_from_a_second_to_a_quarter_of_an_hour(db: None, clock: list[float]) -> None:
    waits = []
    for _ in range(16):
        assert taken() == 0
        waits.append(wait := taken())
        clock[0] += wait
    grown = [wait for wait in waits if wait]
    assert grown[:4] == [2, 3, 5, 9]
    assert max(grown) == grown[-1] == LONGEST + 1


def test_the_first_few_cost_nothing(db: None, clock: list[float]) -> None:
    assert [bool(taken()) for _ in range(FREE + 1)] == [False] * FREE + [True]


def test_a_network_counts_as_one_and_another_does_not(db: None, clock: list[float]) -> None:
    for _ in range(FREE):
        taken(HERE)
    assert taken(NEAR)
    assert not taken(FAR)
    assert not taken(HERE, "charlie@example.org")


def test_a_known_browser_is_not_delayed_by_others(alice: User, clock: list[float]) -> None:
    known = Source(HERE.address, lockout.read_device(lockout.make_device(alice), WHO))
    for _ in range(FREE):
        taken(HERE)
    assert taken(HERE)
    assert not taken(known)


def test_a_new_password_makes_browsers_unknown(alice: User) -> None:
    cookie = lockout.make_device(alice)
    alice.set_password("another " + PASSWORD)
    alice.save()
    assert not lockout.read_device(cookie, WHO)
    assert lockout.read_device(lockout.make_device(alice), WHO)


def test_a_browser_is_known_to_its_own_account_only(alice: User, charlie: User) -> None:
    cookie = lockout.make_device(alice)
    assert lockout.read_device(cookie, WHO.upper())
    assert not lockout.read_device(cookie, "charlie@example.org")
    assert not lockout.read_device(cookie[:-2], WHO)
    assert not lockout.read_device("x", WHO)
    assert not lockout.read_device(signing.dumps(["x", "y"], salt=lockout.DEVICE_SALT), WHO)


def test_success_and_a_day_forget_the_failures(db: None, clock: list[float]) -> None:
    for _ in range(FREE):
        taken()
    forget_attempts(account=WHO, source=HERE)
    assert not taken()
    for _ in range(FREE):
        taken()
    clock[0] += lockout.REMEMBERED + LONGEST
    assert [taken() for _ in range(3)] == [0, 0, 0]


def test_old_attempts_are_forgotten_for_good(db: None, clock: list[float]) -> None:
    taken()
    clock[0] += lockout.REMEMBERED + 1
    assert lockout.forget_old_attempts() == 1
    assert not Attempts.objects.exists()


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.77", "192.0.2.0/24"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("unknown", "unknown"),
    ],
)
def test_a_network_is_a_24_or_a_64(address: str, network: str) -> None:
    assert lockout.network_of(address) == network


@pytest.mark.django_db(transaction=True)
def test_two_hundred_guesses_at_once_are_two_hundred_guesses(clock: list[float]) -> None:
    passed = at_once(20, lambda _: sum(not taken() for _ in range(10)))
    assert sum(passed) == FREE
