"""The counters of rate limits: in the database, and in a real Redis where its server is there."""

import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pytest_django import DjangoAssertNumQueries, Settings
from redis import Redis

from core.errors import RateLimited
from core.models import RateCounter
from core.ratelimit import cache_backends
from core.ratelimit.limits import consume_rate_limit, delete_expired_rate_counters
from tests.harness.rate_limit_windows import frozen_rate_window as frozen_rate_window
from tests.harness.waiting import wait_until

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


@pytest.fixture
def redis(settings: Settings, tmp_path: Path) -> Iterator[Redis]:
    """The limits counted in a server of its own; its client."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server: an option of larger installations")
    path = tmp_path / "redis.sock"
    command = [program, "--port", "0", "--unixsocket", str(path), "--save", ""]
    process = subprocess.Popen([*command, "--dir", str(tmp_path)], stdout=subprocess.DEVNULL)
    backend = "core.ratelimit.cache_backends.RedisRateLimitCache"
    url = f"unix://{path}"
    settings.CACHES = settings.CACHES | {"rates": {"BACKEND": backend, "LOCATION": url}}
    client = Redis.from_url(url)
    try:
        wait_until(path.exists)
        yield client
    finally:
        client.close()
        cache_backends._redis_client(url).close()
        cache_backends._redis_client.cache_clear()
        process.terminate()
        process.wait()


def test_redis_counts_a_rate_in_one_request(redis: Redis, settings: Settings) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"log_in": "2/m"}
    consume_rate_limit("log_in", "198.51.100.1")
    asked = redis.info("stats")["total_commands_processed"]
    consume_rate_limit("log_in", "198.51.100.1")
    # The script runs one command of its own, and asking for the count is one.
    assert redis.info("stats")["total_commands_processed"] - asked <= 3
    with pytest.raises(RateLimited):
        consume_rate_limit("log_in", "198.51.100.1")
    (key,) = redis.keys("*")
    assert 0 < redis.ttl(key) <= 66  # the window and five seconds


def test_of_parallel_calls_redis_lets_through_the_limit(redis: Redis, settings: Settings) -> None:
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"log_in": "20/m"}

    def passes(_number: int) -> bool:
        try:
            consume_rate_limit("log_in", "198.51.100.1")
        except RateLimited:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(passes, range(60))) == 20
    assert redis.info("clients")["connected_clients"] <= 10
