"""The rows that the matrices of this folder are about."""

import pytest

from accounts.models import User
from tests.harness.live_server import live_url
from tests.harness.rest_routes import World, make_world


def pytest_itemcollected(item: pytest.Item) -> None:
    """On PostgreSQL, which minds more than SQLite: types, NULs, ended transactions."""
    item.add_marker(pytest.mark.postgres)


@pytest.fixture
def world(alice: User) -> World:
    """Alice's rows."""
    return make_world(alice)


__all__ = ["live_url"]
