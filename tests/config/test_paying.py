"""What billing adds to the settings."""

from config import fixed
from config.paying import API, with_billing

KEY = "sk_test_0123456789"


def test_forms_may_lead_to_the_pages_of_stripe_and_to_nobody_elses() -> None:
    policy = with_billing(key=KEY, api_base=API)["CONTENT_SECURITY_POLICY"]["DIRECTIVES"]
    pages = ["https://checkout.stripe.com", "https://billing.stripe.com"]
    assert policy == fixed.CONTENT_SECURITY_POLICY["DIRECTIVES"] | {
        "form-action": ["'self'", *pages]
    }
    assert fixed.CONTENT_SECURITY_POLICY["DIRECTIVES"]["form-action"] == ["'self'"]


def test_the_tables_of_dj_stripe_are_there_and_its_admin_is_not() -> None:
    assert with_billing(key=KEY, api_base=API)["INSTALLED_APPS"] == [
        "djstripe",
        *fixed.INSTALLED_APPS,
    ]
    assert "djstripe" not in fixed.INSTALLED_APPS
