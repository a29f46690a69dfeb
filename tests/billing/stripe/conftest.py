"""Fixtures of tests that need TEST_BILLING_ENABLED=true, as tests/run.py sets it."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from django.conf import settings as configured
from django.core.management import call_command
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from tests.factories import make_user
from tests.harness.fake_stripe.server import FakeStripe, fake_stripe
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


@pytest.fixture
def shop(fake: FakeStripe, live_server: LiveServer, settings: Any) -> FakeStripe:
    """The fake Stripe, set up for this server by `billing_setup`."""
    settings.PUBLIC_URL = live_server.url
    load_standard_plans()
    call_command("billing_setup", price=["pro=29", "scale=99"], verbosity=0)
    return fake


@pytest.fixture
def alice(transactional_db: None) -> User:
    return make_user("alice@example.org")


@pytest.fixture
def buyer(shop: FakeStripe, live_server: LiveServer, alice: User) -> Customer:
    """Alice, over real HTTP."""
    return Customer.of(alice, live_server.url)
