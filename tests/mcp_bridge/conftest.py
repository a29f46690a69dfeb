"""A live server, and an MCP client for owner, stranger and staff."""

import pytest

from accounts.models import User
from tests.factories import make_key
from tests.harness.live_server import Agent, live_mcp, live_url

__all__ = ["live_url"]


@pytest.fixture
def agent(live_url: str, alice: User) -> Agent:
    """The client of the owner."""
    return live_mcp(live_url, make_key(alice)[1])


@pytest.fixture
def stranger(live_url: str, charlie: User) -> Agent:
    return live_mcp(live_url, make_key(charlie)[1])


@pytest.fixture
def staff_agent(live_url: str, staff: User) -> Agent:
    return live_mcp(live_url, make_key(staff)[1])
