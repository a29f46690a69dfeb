"""Staff at the admin, and people who are not staff."""

import pytest
from django.test import Client

from accounts.models import User
from tests.harness.admin_client import AdminClient
from tests.harness.clients import logged_in_client
from tests.pages.conftest import world

__all__ = ["world"]


@pytest.fixture
def desk(staff: User) -> AdminClient:
    return AdminClient(logged_in_client(staff))


@pytest.fixture
def owner(alice: User) -> Client:
    return logged_in_client(alice)


@pytest.fixture
def stranger(charlie: User) -> Client:
    return logged_in_client(charlie)
