"""What BILLING_ENABLED adds to the settings: dj-stripe's tables, and where forms may lead."""

import re
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from config import fixed

API = "https://api.stripe.com"
PAGES = ("https://checkout.stripe.com", "https://billing.stripe.com")
KEY = re.compile(r"(sk|rk)_(test|live)_[A-Za-z0-9_]{8,}")


def with_billing(*, key: str, api_base: str) -> dict[str, Any]:
    """The settings that change with billing. Raises ImproperlyConfigured for a missing key."""
    if not KEY.fullmatch(key):
        raise ImproperlyConfigured(
            "Set STRIPE_SECRET_KEY to the secret key of your Stripe account (sk_test_… or "
            "sk_live_…), or set BILLING_ENABLED=false."
        )
    policy = fixed.CONTENT_SECURITY_POLICY["DIRECTIVES"]
    # Our form answers with a redirect to the pay page, and browsers hold form-action against it.
    pages = PAGES if api_base == API else (api_base,)
    return {
        "INSTALLED_APPS": ["djstripe", *fixed.INSTALLED_APPS],
        "CONTENT_SECURITY_POLICY": {
            "DIRECTIVES": policy | {"form-action": [*policy["form-action"], *pages]}
        },
        "DJSTRIPE_FOREIGN_KEY_TO_FIELD": "id",
    }
