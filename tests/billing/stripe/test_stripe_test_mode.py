"""`make stripe-test-mode` against the fake Stripe."""

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings

from tests.harness.fake_stripe.server import FakeStripe, fake_stripe

KEY = "sk_test_" + "fake" * 8


def run(**environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tests.billing.stripe.stripe_test_mode"],
        cwd=settings.BASE_DIR,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.nightly  # by day tests/billing/stripe/test_subscription_lifecycle.py
def test_the_command_runs_the_whole_lifecycle() -> None:
    with fake_stripe() as fake:
        fake.api.key = KEY
        ended = run(STRIPE_SECRET_KEY=KEY, TEST_SETTINGS=json.dumps({"STRIPE_API_BASE": fake.base}))
        assert ended.stdout.endswith("All of it is as it should be.\n"), ended.stderr
        assert isinstance(fake, FakeStripe)


def test_it_refuses_a_live_key() -> None:
    ended = run(STRIPE_SECRET_KEY="sk_live_" + "x" * 24)
    assert (ended.returncode, "test mode" in ended.stderr) == (1, True)
