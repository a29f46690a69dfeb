"""The counters behind rate limits where there is no Redis."""

from accounts.limits import forget_used_up_rates, take_rate
from accounts.models import RateCounter


def test_counters_of_windows_that_are_over_are_forgotten(db: None) -> None:
    take_rate("log_in", "198.51.100.1")
    RateCounter.objects.update(expires_at=1)
    take_rate("log_in", "198.51.100.2")
    forget_used_up_rates()
    assert RateCounter.objects.count() == 1
