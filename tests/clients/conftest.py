"""A live server for the hooks."""

from tests.live import live_url

__all__ = ["live_url"]
