"""Billing off, on, off and on again over one database; long: `make billing-migrations`."""

import os

import pytest

from tests.billing.stripe.billing_toggle import switch


@pytest.mark.nightly
@pytest.mark.timeout(400)
def test_billing_can_be_switched_on_and_off_and_on() -> None:
    # `make test` has migrated one already (tests/run.py); alone, this does.
    template = os.environ.get("TEST_SWITCHED_TEMPLATE", "")
    switch("tests.billing.stripe.settings_one_step_migrations", template=template, DATABASE_URL="")
