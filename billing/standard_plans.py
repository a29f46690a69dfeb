"""The plans that every installation starts with; staff changes them in the admin afterwards."""

from typing import Any

STANDARD: tuple[dict[str, Any], ...] = (
    {
        "slug": "free",
        "name": "Free",
        "price_text": "0",
        "monthly_evolutions": 50,
        "monthly_tokens": 1_000_000,
        "max_playbooks": 5,
        "max_keys": 3,
        "retention_days": 30,
        "is_default": True,
        "position": 1,
    },
    {
        "slug": "pro",
        "name": "Pro",
        "price_lookup_key": "ace_pro_monthly",
        "price_text": "29 US$ a month",
        "trial_days": 14,
        "monthly_evolutions": 1_000,
        "monthly_tokens": 30_000_000,
        "max_playbooks": 100,
        "max_keys": 25,
        "retention_days": 180,
        "position": 2,
    },
    {
        "slug": "team",
        "name": "Team",
        "price_lookup_key": "ace_team_monthly",
        "price_text": "99 US$ a month",
        "monthly_evolutions": 10_000,
        "monthly_tokens": 300_000_000,
        "max_playbooks": None,
        "max_keys": None,
        "retention_days": 365,
        "position": 3,
    },
)
