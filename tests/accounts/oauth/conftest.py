"""Alice has a connected app; charlie is another user with his own."""

import pytest

from accounts.models import User
from tests.harness.live_server import live_url
from tests.harness.oauth_client import OAuthClient

__all__ = ["live_url"]


@pytest.fixture
def app(alice: User) -> OAuthClient:
    return OAuthClient(alice)
