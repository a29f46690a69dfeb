"""Parallel requests: single-use tokens, exact rate limits, one row per idempotency key."""

import os
from collections import Counter

import pytest
from pytest_django import Settings

from accounts.keys.authentication import principal_for_key
from accounts.keys.jwt_tokens import issue_tokens, refresh_tokens
from accounts.models import RefreshToken, User
from core.errors import AceError, NotAuthenticated
from core.models import IdempotentResponse
from core.ratelimit.limits import consume_rate_limit
from playbooks.models import Playbook
from tests.factories import make_key
from tests.harness.concurrency import run_concurrently
from tests.harness.rest_client import Rest

pytestmark = [pytest.mark.databases, pytest.mark.django_db(transaction=True)]


def test_one_of_eight_parallel_uses_of_a_refresh_token_succeeds(alice: User) -> None:
    token = issue_tokens(user=alice).refresh

    def use(_: int) -> bool:
        try:
            return bool(refresh_tokens(refresh=token))
        except NotAuthenticated:
            return False

    assert Counter(run_concurrently(8, use)) == {True: 1, False: 7}
    assert not RefreshToken.objects.filter(revoked_at=None).exists()


def test_twenty_of_two_hundred_parallel_uses_of_a_limit_pass(db: None, settings: Settings) -> None:
    settings.RATE_LIMITS = {"log_in": "20/h"}

    def use(_: int) -> int:
        return sum(is_allowed("192.0.2.1") for _ in range(10))

    assert sum(run_concurrently(20, use)) == 20


def is_allowed(address: str) -> bool:
    try:
        consume_rate_limit("log_in", address)
    except AceError:
        return False
    return True


@pytest.mark.timeout(3600)
def test_fifty_parallel_retries_with_one_idempotency_key_create_one_row(alice: User) -> None:
    """`ACE_IDEMPOTENCY_KEYS=200` does it with as many keys, one after the other."""
    token, keys = make_key(alice)[1], int(os.environ.get("ACE_IDEMPOTENCY_KEYS", "1"))
    for number in range(1, keys + 1):

        def create(_: int, name: str = f"once-{number}") -> tuple[int, bytes]:
            answer = Rest(token).post("/playbooks", {"name": name}, Idempotency_Key=name)
            return answer.status_code, answer.content

        answers = Counter(run_concurrently(50, create))
        assert [status for status, _ in answers] == [201]
        assert Playbook.objects.filter(owner=alice).count() == number
        assert IdempotentResponse.objects.count() == number


def test_parallel_first_uses_of_a_key_all_pass(alice: User) -> None:
    token = make_key(alice)[1]
    assert set(run_concurrently(20, lambda _: principal_for_key(token).user.pk)) == {alice.pk}
