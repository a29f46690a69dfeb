"""Fixtures of these tests beside the cast."""

from tests.live import live_url

__all__ = ["live_url"]
