"""The rows that the matrices of this folder are about."""

import pytest

from accounts.models import User
from tests.doors.rest_routes import World, make_world


@pytest.fixture
def world(alice: User) -> World:
    """Alice's rows."""
    return make_world(alice)
