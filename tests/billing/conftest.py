"""Fixtures: billing on, with the standard plans."""

import pytest
from pytest_django import Settings

from billing.models import Plan
from tests.harness.standard_plans import load_standard_plans


@pytest.fixture
def billing(settings: Settings, db: None) -> Plan:
    """Turn billing on; returns the free plan, the default of all users."""
    settings.BILLING_ENABLED = True
    load_standard_plans()
    return Plan.objects.get(slug="free")
