"""A live server for the hooks."""

from tests.harness.live_server import live_url

__all__ = ["live_url"]
