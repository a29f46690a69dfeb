"""Billing switched on, and everybody on plans of a size for tests."""

import pytest
from pytest_django import Settings

from billing.models import Plan
from billing.plans import load_plans


@pytest.fixture
def billing(settings: Settings, db: None) -> Plan:
    """Billing is on; the free plan, which is everybody's, is the answer."""
    settings.BILLING_ENABLED = True
    load_plans()
    return Plan.objects.get(slug="free")
