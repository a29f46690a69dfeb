"""Alice has an app; charlie is a stranger with one of his own."""

import pytest

from accounts.models import User
from tests.live import live_url
from tests.oauth.flow import App

__all__ = ["live_url"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """On PostgreSQL, which minds more than SQLite: types, NULs, ended transactions."""
    item.add_marker(pytest.mark.postgres)


@pytest.fixture
def app(alice: User) -> App:
    return App(alice)
