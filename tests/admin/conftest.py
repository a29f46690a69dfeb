"""Staff at the admin, and people who are not staff."""

import pytest
from django.test import Client

from accounts.models import User
from tests.admin.desk import Desk
from tests.pages.conftest import client_of, world

__all__ = ["world"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """On PostgreSQL, which minds more than SQLite: types, NULs, ended transactions."""
    item.add_marker(pytest.mark.postgres)


@pytest.fixture
def desk(staff: User) -> Desk:
    return Desk(client_of(staff))


@pytest.fixture
def owner(alice: User) -> Client:
    return client_of(alice)


@pytest.fixture
def stranger(charlie: User) -> Client:
    return client_of(charlie)
