"""Fixtures of tests that need TEST_BILLING_ENABLED=true, as tests/run.py sets it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import settings as configured
from django.core.management import call_command
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from billing.models import Plan
from tests.conftest import ALICE
from tests.factories import make_user
from tests.harness.fake_stripe.server import FakeStripe, fake_stripe
from tests.harness.row_replay import RecordedRows
from tests.harness.standard_plans import load_standard_plans
from tests.harness.stripe_customer import Customer

collect_ignore_glob = [] if configured.BILLING_ENABLED else ["test_*.py"]


@pytest.fixture
def fake(settings: Any) -> Iterator[FakeStripe]:
    """A fake Stripe with its clock 65 days ago, so that two renewals are in the past."""
    with ExitStack() as stack:
        found = stack.enter_context(fake_stripe(days_ago=65))
        found.api.key = settings.STRIPE_SECRET_KEY
        settings.STRIPE_API_BASE = found.base
        yield found


@dataclass
class Shop:
    """What `set_up_shop` leaves here and at the fake Stripe, the same for every test."""

    rows: RecordedRows
    stripe: dict[str, Any]


SHOPS: dict[str, Shop] = {}
"""By the address of the live server, and what the shop has."""


def restore_or_build(name: str, fake: FakeStripe, build: Callable[[], object], rows: Any) -> None:
    """What `build` leaves here and at the fake Stripe: built once, then inserted again."""
    if recorded := SHOPS.get(name):
        recorded.rows.insert()
        fake.world.restore(recorded.stripe)
    else:
        rows.record(build)
        SHOPS[name] = Shop(rows, fake.world.saved())


def set_up_shop() -> None:
    load_standard_plans()
    call_command("billing_setup", price=["pro=29", "scale=99"], verbosity=0)


@pytest.fixture
def shop(fake: FakeStripe, live_server: LiveServer, settings: Any) -> FakeStripe:
    """The fake Stripe, set up for this server by `billing_setup`."""
    settings.PUBLIC_URL = live_server.url
    if Plan.objects.exists():
        set_up_shop()
    else:
        restore_or_build(live_server.url, fake, set_up_shop, RecordedRows())
    return fake


@pytest.fixture
def alice(transactional_db: None) -> User:
    return make_user("alice@example.org", id=ALICE)


@pytest.fixture
def buyer(shop: FakeStripe, live_server: LiveServer, alice: User) -> Customer:
    """Alice, over real HTTP."""
    return Customer.of(alice, live_server.url)
