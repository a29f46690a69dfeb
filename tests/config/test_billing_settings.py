"""What billing adds to the settings."""

from typing import Any

from django.conf import settings

from config.settings.billing import STRIPE_API, billing_settings

POLICY, APPS = {"default-src": ["'none'"], "form-action": ["'self'"]}, list(settings.INSTALLED_APPS)
GIVEN: dict[str, Any] = {
    "key": "sk_test_0123456789",
    "api_base": STRIPE_API,
    "installed_apps": APPS,
    "policy": POLICY,
}


def test_forms_may_lead_to_the_pages_of_stripe_and_to_nobody_elses() -> None:
    policy = billing_settings(**GIVEN)["CONTENT_SECURITY_POLICY"]["DIRECTIVES"]
    pages = ["https://checkout.stripe.com", "https://billing.stripe.com"]
    assert policy == POLICY | {"form-action": ["'self'", *pages]}
    assert POLICY["form-action"] == ["'self'"]


def test_the_tables_of_dj_stripe_are_there_and_its_admin_is_not() -> None:
    assert billing_settings(**GIVEN)["INSTALLED_APPS"] == [
        "djstripe",
        *APPS,
    ]
    assert "djstripe" not in APPS
