"""`manage.py doctor stripe` reports each way in which payment can be misconfigured."""

from collections.abc import Iterator
from typing import Any

import pytest

from config.doctor import Finding
from config.doctor.external_services import check_stripe
from tests.harness.fake_stripe.server import FakeStripe
from tests.harness.standard_plans import load_standard_plans

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def plans(transactional_db: None) -> Iterator[None]:
    load_standard_plans()
    yield


def look() -> Finding:
    return check_stripe()


def test_a_complete_setup_has_no_findings(shop: FakeStripe) -> None:
    assert (look().status, look().detail) == ("ok", "accepts the test key, has prices of 2 plans")


def test_plans_without_a_price_are_named_with_the_command(fake: FakeStripe) -> None:
    found = look()
    assert found.status == "failed"
    assert "ace_pro_monthly" in found.detail
    assert "billing_setup" in found.advice


def test_a_refused_key_is_reported_and_not_shown(shop: FakeStripe, settings: Any) -> None:
    shop.api.key = "another"
    found = look()
    assert (found.status, found.detail) == ("failed", "Stripe rejects the key")
    assert settings.STRIPE_SECRET_KEY not in f"{found}"


def test_an_unreachable_stripe_is_reported(settings: Any) -> None:
    settings.STRIPE_API_BASE = "http://127.0.0.1:9"
    found = look()
    assert (found.status, found.detail) == ("failed", "Stripe does not answer")


def test_while_billing_is_off_stripe_is_not_checked(fake: FakeStripe, settings: Any) -> None:
    settings.BILLING_ENABLED = False
    assert look().status == "skipped"
    assert not fake.api.calls
