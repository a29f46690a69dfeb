"""One cast for every test: alice owns, charlie is a stranger, staff works in the admin."""

import pytest

from accounts.models import User
from playbooks.models import Playbook
from tests.factories import make_playbook, make_user


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests last: Playwright leaves an event loop running on the thread of the tests."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@pytest.fixture
def alice(db: None) -> User:
    return make_user("alice@example.org")


@pytest.fixture
def charlie(db: None) -> User:
    return make_user("charlie@example.org")


@pytest.fixture
def staff(db: None) -> User:
    return make_user("staff@example.org", is_staff=True, is_superuser=True)


@pytest.fixture
def playbook(alice: User) -> Playbook:
    return make_playbook(alice)
