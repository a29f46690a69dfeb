"""The plans that every installation starts with; staff edit them in the admin."""

from typing import Any

from django.db import transaction

from billing.models import Plan

STANDARD_PLANS: tuple[dict[str, Any], ...] = (
    {
        "slug": "free",
        "name": "Free",
        "display_price": "0",
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
        "display_price": "29 US$ a month",
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
        "display_price": "99 US$ a month",
        "monthly_evolutions": 10_000,
        "monthly_tokens": 300_000_000,
        "max_playbooks": None,
        "max_keys": None,
        "retention_days": 365,
        "position": 3,
    },
)


def load_standard_plans() -> int:
    """Create missing standard plans and a default plan; returns how many plans are new.

    The first migration creates them; this restores deleted ones. Existing plans stay unchanged.
    """
    has_default = Plan.objects.filter(is_default=True).exists()
    made = 0
    with transaction.atomic():
        for fields in STANDARD_PLANS:
            fresh = fields | {"is_default": fields.get("is_default", False) and not has_default}
            slug = fresh.pop("slug")
            made += Plan.objects.get_or_create(slug=slug, defaults=fresh)[1]
        if not Plan.objects.filter(is_default=True).exists():
            free = Plan.objects.filter(price_lookup_key="", is_active=True)[:1]
            Plan.objects.filter(pk__in=list(free.values_list("pk", flat=True))).update(
                is_default=True
            )
    return made
