"""The rows of the scope and tenancy matrices."""

import pytest

from accounts.models import User
from tests.harness.live_server import live_url
from tests.harness.rest_routes import World, make_world
from tests.harness.row_replay import RowReplay

rows_of_alice = RowReplay(make_world)


@pytest.fixture
def world(alice: User) -> World:
    """Alice's rows."""
    return rows_of_alice(alice)


__all__ = ["live_url"]
