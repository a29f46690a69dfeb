"""Billing off, on, off and on again over one database; long: `make billing-migrations`."""

import os

import pytest

from tests.stripe.switching import switch


@pytest.mark.timeout(400)
def test_billing_can_be_switched_on_and_off_and_on() -> None:
    # `make test` has migrated one already (tests/run.py); alone, this does.
    template = os.environ.get("TEST_SWITCHED_TEMPLATE", "")
    switch("tests.stripe.switched", template=template, DATABASE_URL="")
