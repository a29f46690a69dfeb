"""One cast for every test: alice owns, charlie is a stranger, staff works in the admin."""

import gc
import shutil
from uuid import UUID

import pytest
from django.conf import settings
from django.db import connection, transaction
from pytest_django.plugin import DjangoDbBlocker

from accounts.models import User
from billing.limits import plan_limits
from playbooks.models import Playbook
from tests.factories import make_playbook, make_user
from tests.harness import cpu_by_file, fast_flush, shared_tls
from tests.harness.migrated_template import TEMPLATE
from tests.harness.row_replay import RowReplay


def pytest_configure(config: pytest.Config) -> None:
    fast_flush.install()
    shared_tls.install()
    cpu_by_file.install(config)
    gc.disable()


def pytest_collection_finish() -> None:
    """What was imported is left alone; going through the rest was a tenth of a test's time."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000, 20, 20)


def pytest_runtest_setup() -> None:
    """Alice has the same id in every test, and a report's limit is known for half a minute."""
    plan_limits._report_limit.cache_clear()


def pytest_unconfigure() -> None:
    """The folder that config/settings/test.py makes for a process goes with it."""
    shutil.rmtree(settings.DATA_DIR, ignore_errors=True)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests last: Playwright leaves an event loop running on the thread of the tests."""
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)


@pytest.fixture(scope="session")
def django_db_keepdb(request: pytest.FixtureRequest, django_db_modify_db_settings: None) -> bool:
    """On SQLite the tests' database begins as a copy; PostgreSQL's settings name the template."""
    if not TEMPLATE or connection.vendor != "sqlite":
        return bool(request.config.getvalue("reuse_db"))
    shutil.copyfile(TEMPLATE, connection.settings_dict["TEST"]["NAME"])
    return True


# The same in every test, so that rows of hers can be inserted again (harness/row_replay.py).
ALICE = UUID("a11ce000-0000-4000-8000-000000000000")


@pytest.fixture
def alice(db: None) -> User:
    return make_user("alice@example.org", id=ALICE)


@pytest.fixture
def charlie(db: None) -> User:
    return make_user("charlie@example.org")


@pytest.fixture
def staff(db: None) -> User:
    return make_user("staff@example.org", is_staff=True, is_superuser=True)


@pytest.fixture(scope="session")
def playbook_of_alice(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> RowReplay[Playbook]:
    """What `make_playbook` writes into a database without other rows, recorded once a process."""
    # Its version is sealed with its time.
    recorded = RowReplay(make_playbook, as_of_now=False)
    with django_db_blocker.unblock(), transaction.atomic():
        recorded(make_user("alice@example.org", id=ALICE))
        transaction.set_rollback(True)
    return recorded


@pytest.fixture
def playbook(
    alice: User, playbook_of_alice: RowReplay[Playbook], request: pytest.FixtureRequest
) -> Playbook:
    if alice.pk != ALICE or "billing" in request.fixturenames:
        return make_playbook(alice)
    made = playbook_of_alice(alice)
    made.owner = alice
    return made
