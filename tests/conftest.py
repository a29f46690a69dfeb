"""One cast for every test: alice owns, charlie is a stranger, staff works in the admin."""

import pytest

from accounts.models import User
from playbooks.models import Playbook
from tests.factories import make_playbook, make_user


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What may take long first, so that no process ends long after the others.

    Browser tests last: Playwright leaves an event loop running on the thread of the tests.
    """
    items.sort(key=lambda item: (item.get_closest_marker("browser") is not None, -_longest(item)))


def _longest(item: pytest.Item) -> float:
    """Seconds that the test says it may take."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker is not None and marker.args else 0.0


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
