"""The plans that every installation starts with; staff edit them in the admin."""

from typing import Any

from django.db import transaction

from billing.models import INCLUDED, Limit, Plan

STANDARD_PLANS: tuple[dict[str, Any], ...] = (
    {"slug": "free", "name": "Free", "retention_days": 30, "is_default": True, "position": 1},
    {
        "slug": "pro",
        "name": "Pro",
        "price_lookup_key": "ace_pro_monthly",
        "trial_days": 14,
        "retention_days": 180,
        "position": 2,
    },
    {
        "slug": "scale",
        "name": "Scale",
        "price_lookup_key": "ace_scale_monthly",
        "retention_days": 365,
        "position": 3,
    },
)
STANDARD_LIMITS: dict[str, dict[str, int]] = {
    "free": {
        "monthly_evolutions": 50,
        "monthly_tokens": 1_000_000,
        "max_playbooks": 5,
        "max_keys": 3,
        "stored_playbooks": 50,
        "stored_mb": 100,
        "reports_per_hour": 100,
    },
    "pro": {
        "monthly_evolutions": 1_000,
        "monthly_tokens": 30_000_000,
        "monthly_usd": 15,
        "max_playbooks": 100,
        "max_keys": 25,
        "stored_playbooks": 1_000,
        "reports_per_hour": 1_000,
    },
    "scale": {
        "monthly_evolutions": 10_000,
        "monthly_tokens": 300_000_000,
        "monthly_usd": 50,
        "reports_per_hour": 5_000,
    },
}


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
            plan, is_new = Plan.objects.get_or_create(slug=slug, defaults=fresh)
            if is_new:
                made += 1
                set_plan_limits(plan, **STANDARD_LIMITS[slug])
        if not Plan.objects.filter(is_default=True).exists():
            free = Plan.objects.filter(price_lookup_key="", is_active=True)[:1]
            Plan.objects.filter(pk__in=list(free.values_list("pk", flat=True))).update(
                is_default=True
            )
    return made


def set_plan_limits(plan: Plan, **amounts: int | None) -> None:
    """Set limits of the plan by their names in INCLUDED; None: unlimited."""
    for name, amount in amounts.items():
        unit, window = INCLUDED[name]
        Limit.objects.update_or_create(
            plan=plan, unit=unit, window=window, defaults={"set_by": "plan", "amount": amount}
        )
