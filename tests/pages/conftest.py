"""The world of the pages, and clients that are logged in."""

import pytest
from django.test import Client

from accounts.models import User
from tests.pages.world import World, build_world


def pytest_itemcollected(item: pytest.Item) -> None:
    """On PostgreSQL, which minds more than SQLite: types, NULs, ended transactions."""
    item.add_marker(pytest.mark.postgres)


def client_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def world(alice: User) -> World:
    return build_world(alice)


@pytest.fixture
def owner(alice: User) -> Client:
    return client_of(alice)


@pytest.fixture
def stranger(charlie: User) -> Client:
    return client_of(charlie)


@pytest.fixture
def admin_page(staff: User) -> Client:
    return client_of(staff)
