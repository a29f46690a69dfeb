"""Billing off, on, off and on again over one database; long: `make billing-migrations`."""

import pytest

from tests.stripe.switching import switch


@pytest.mark.timeout(400)
def test_billing_can_be_switched_on_and_off_and_on() -> None:
    switch("tests.stripe.switched", DATABASE_URL="")
