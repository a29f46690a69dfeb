"""The world of the pages, and clients that are logged in."""

import pytest
from django.test import Client

from accounts.models import User
from tests.harness.clients import logged_in_client
from tests.harness.row_replay import RowReplay
from tests.harness.sample_account import World, build_world

sample_account = RowReplay(build_world)


@pytest.fixture
def world(alice: User) -> World:
    return sample_account(alice)


@pytest.fixture
def owner(alice: User) -> Client:
    return logged_in_client(alice)


@pytest.fixture
def stranger(charlie: User) -> Client:
    return logged_in_client(charlie)


@pytest.fixture
def admin_page(staff: User) -> Client:
    return logged_in_client(staff)
