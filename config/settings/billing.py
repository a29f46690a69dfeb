"""Settings added by BILLING_ENABLED: dj-stripe's app, and the CSP for Stripe's pages."""

import re
from typing import Any

from django.core.exceptions import ImproperlyConfigured

STRIPE_API = "https://api.stripe.com"
STRIPE_PAGES = ("https://checkout.stripe.com", "https://billing.stripe.com")
STRIPE_KEY_PATTERN = re.compile(r"(sk|rk)_(test|live)_[A-Za-z0-9_]{8,}")


def billing_settings(
    *, key: str, api_base: str, installed_apps: list[str], policy: dict[str, list[str]]
) -> dict[str, Any]:
    """The settings that billing changes. Raises ImproperlyConfigured without a valid key."""
    if not STRIPE_KEY_PATTERN.fullmatch(key):
        raise ImproperlyConfigured(
            "Set STRIPE_SECRET_KEY to the secret key of your Stripe account (sk_test_… or "
            "sk_live_…), or set BILLING_ENABLED=false."
        )
    # Our form redirects to Stripe's checkout, and browsers apply form-action to redirects.
    pages = STRIPE_PAGES if api_base == STRIPE_API else (api_base,)
    return {
        "INSTALLED_APPS": ["djstripe", *installed_apps],
        "CONTENT_SECURITY_POLICY": {
            "DIRECTIVES": policy | {"form-action": [*policy["form-action"], *pages]}
        },
        "DJSTRIPE_FOREIGN_KEY_TO_FIELD": "id",
    }
