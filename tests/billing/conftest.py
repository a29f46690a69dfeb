"""Fixtures: billing on, with the standard plans."""

from importlib import import_module

import pytest
from pytest_django import Settings

from billing.models import Plan
from tests.harness.standard_plans import load_standard_plans


@pytest.fixture
def billing(settings: Settings, db: None, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Turn billing on; returns the free plan, the default of all users."""
    settings.BILLING_ENABLED = True
    # dj-stripe's tables are not installed here, only in tests/billing/stripe.
    monkeypatch.setattr(import_module("evolution.worker.sweep"), "is_resync_due", lambda: False)
    load_standard_plans()
    return Plan.objects.get(slug="free")
