"""Limits whose window does not end while a test counts.

django-ratelimit's windows end by the clock: three calls within a second can be in two of them.
"""

import time

import pytest


@pytest.fixture
def frozen_rate_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every window of a limit has begun now."""
    began = int(time.time())
    monkeypatch.setattr("django_ratelimit.core._get_window", lambda _key, period: began + period)
