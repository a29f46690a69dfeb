"""The HTTP client for Stripe."""

import logging
import time
from typing import Any

import pytest
from django.db import transaction

from billing.errors import PaymentUnavailable
from billing.stripe.gateway import stripe_api
from tests.harness.fake_stripe.server import FakeStripe


def test_a_request_without_response_ends_at_the_deadline(
    fake: FakeStripe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stripe_api, "SECONDS", 0.3)
    gate = fake.hold("/v1/prices")
    began = time.monotonic()
    with pytest.raises(PaymentUnavailable):
        stripe_api.find_price("ace_pro_monthly")
    gate.opened.set()
    assert time.monotonic() - began < 5
    assert len(fake.api.calls) == 1  # no try that nobody has asked for


@pytest.mark.django_db(transaction=True)
def test_stripe_is_never_called_inside_a_transaction(fake: FakeStripe) -> None:
    with transaction.atomic(), pytest.raises(RuntimeError, match="inside a transaction"):
        stripe_api.find_price("ace_pro_monthly")
    assert not fake.api.calls


def test_a_refused_connection_is_reported(settings: Any) -> None:
    settings.STRIPE_API_BASE = "http://127.0.0.1:9"
    with pytest.raises(PaymentUnavailable, match="Nothing was changed"):
        stripe_api.find_price("ace_pro_monthly")


def test_the_log_has_the_kind_of_failure_and_no_secret(
    fake: FakeStripe, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    fake.api.key = "another"
    with caplog.at_level(logging.DEBUG), pytest.raises(PaymentUnavailable):
        stripe_api.create_customer(user_id="u", email="alice@example.org", attempt=0)  # type: ignore[arg-type]  # any id
    assert "AuthenticationError, status 401" in caplog.text
    assert settings.STRIPE_SECRET_KEY not in caplog.text
    assert "alice@example.org" not in caplog.text
