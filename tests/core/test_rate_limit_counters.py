"""The database counters of rate limits, without Redis."""

import pytest
from pytest_django import DjangoAssertNumQueries, Settings

from core.errors import RateLimited
from core.models import RateCounter
from core.ratelimit.limits import consume_rate_limit, delete_expired_rate_counters
from tests.harness.rate_limit_windows import frozen_rate_window as frozen_rate_window

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("frozen_rate_window")]


def test_counters_of_past_windows_are_deleted(db: None) -> None:
    consume_rate_limit("log_in", "198.51.100.1")
    RateCounter.objects.update(expires_at=1)
    consume_rate_limit("log_in", "198.51.100.2")
    delete_expired_rate_counters()
    assert RateCounter.objects.count() == 1


def test_the_addresses_of_one_ipv6_network_share_a_limit(db: None, settings: Settings) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"log_in": "2/m"}
    for name in ("2001:db8::1", "2001:db8::ffff:2"):
        consume_rate_limit("log_in", name)
    with pytest.raises(RateLimited):
        consume_rate_limit("log_in", "2001:db8:0:0:9::3")
    consume_rate_limit("log_in", "2001:db8:0:1::1")


def test_a_rate_is_counted_in_one_statement(
    db: None, django_assert_num_queries: DjangoAssertNumQueries, settings: Settings
) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"log_in": "2/m"}
    for _ in range(2):
        with django_assert_num_queries(1):
            consume_rate_limit("log_in", "198.51.100.1")
    with django_assert_num_queries(1), pytest.raises(RateLimited):
        consume_rate_limit("log_in", "198.51.100.1")


def test_an_expired_counter_starts_again(db: None, settings: Settings) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"log_in": "1/m"}
    consume_rate_limit("log_in", "198.51.100.1")
    RateCounter.objects.update(expires_at=1)
    consume_rate_limit("log_in", "198.51.100.1")
    with pytest.raises(RateLimited):
        consume_rate_limit("log_in", "198.51.100.1")
