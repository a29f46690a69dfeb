"""The counters behind rate limits where there is no Redis."""

import pytest
from pytest_django import DjangoAssertNumQueries, Settings

from accounts.errors import RateLimited
from accounts.limits import forget_used_up_rates, take_rate
from accounts.models import RateCounter
from tests.windows import one_window as one_window

pytestmark = [pytest.mark.databases, pytest.mark.usefixtures("one_window")]


def test_counters_of_windows_that_are_over_are_forgotten(db: None) -> None:
    take_rate("log_in", "198.51.100.1")
    RateCounter.objects.update(expires_at=1)
    take_rate("log_in", "198.51.100.2")
    forget_used_up_rates()
    assert RateCounter.objects.count() == 1


def test_the_addresses_of_one_ipv6_network_share_a_limit(db: None, settings: Settings) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"log_in": "2/m"}
    for name in ("2001:db8::1", "2001:db8::ffff:2"):
        take_rate("log_in", name)
    with pytest.raises(RateLimited):
        take_rate("log_in", "2001:db8:0:0:9::3")
    take_rate("log_in", "2001:db8:0:1::1")


def test_a_rate_is_counted_in_one_statement(
    db: None, django_assert_num_queries: DjangoAssertNumQueries, settings: Settings
) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"log_in": "2/m"}
    for _ in range(2):
        with django_assert_num_queries(1):
            take_rate("log_in", "198.51.100.1")
    with django_assert_num_queries(1), pytest.raises(RateLimited):
        take_rate("log_in", "198.51.100.1")


def test_a_counter_that_is_over_begins_anew(db: None, settings: Settings) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"log_in": "1/m"}
    take_rate("log_in", "198.51.100.1")
    RateCounter.objects.update(expires_at=1)
    take_rate("log_in", "198.51.100.1")
    with pytest.raises(RateLimited):
        take_rate("log_in", "198.51.100.1")
