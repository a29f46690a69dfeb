"""Copy cost caps, budgets, plan columns and eight settings to the table of limits."""

import os
from decimal import Decimal

from django.db import migrations
from django.db.models import F

CAPS = {
    "COST_CAP_DAY_USD": ("server", "day"),
    "COST_CAP_USER_DAY_USD": ("account", "day"),
    "COST_CAP_USER_MONTH_USD": ("account", "month"),
    "COST_CAP_PLAYBOOK_DAY_USD": ("playbook", "day"),
    "COST_CAP_PLAYBOOK_MONTH_USD": ("playbook", "month"),
}
STORED = {
    "MAX_STORED_PLAYBOOKS": ("stored_playbooks", 1_000),
    "MAX_STORED_VERSIONS": ("stored_versions", 50_000),
    "MAX_STORED_MB": ("stored_mb", 2_000),
}
COLUMNS = {
    "monthly_evolutions": ("evolutions", "month"),
    "monthly_tokens": ("tokens", "month"),
    "max_playbooks": ("playbooks", "any"),
    "max_keys": ("keys", "any"),
}
# Of a new installation's plans, beside their columns.
NEW = {
    "free": (("stored_playbooks", "any", 50), ("stored_mb", "any", 100), ("reports", "hour", 100)),
    "pro": (("usd", "month", 15), ("reports", "hour", 1_000)),
    "team": (("usd", "month", 50), ("reports", "hour", 5_000)),
}


def setting(name):
    """The number of a variable that is read here for the last time; None: unset."""
    text = os.environ.get(name, "").strip()
    return Decimal(text) if text.replace(".", "", 1).isdigit() else None


def move_settings(limits):
    for name, (scope, window) in CAPS.items():
        amount = setting(name)
        if amount is not None and amount > 0:
            limits.create(scope=scope, unit="usd", window=window, amount=amount)
    for name, (unit, usual) in STORED.items():
        amount = setting(name)
        if amount is None or amount > 0:
            limits.create(unit=unit, window="any", amount=amount or usual)


def move_rows(apps, limits):
    for model, set_by in (("CostCap", "operator"), ("Budget", "owner")):
        for row in apps.get_model("billing", model).objects.iterator():
            scope = "playbook" if row.playbook_id else "account"
            of = {"set_by": set_by, "scope": scope, "unit": "usd", "user_id": row.user_id}
            of["playbook_id"] = row.playbook_id
            if set_by == "owner":
                of |= {"stops": row.stops, "warn_percent": row.warn_percent}
            for window in ("day", "month"):
                amount = getattr(row, f"usd_per_{window}")
                if amount is not None:  # of a cost cap, 0 meant no limit
                    warned = getattr(row, f"warned_{window}", None)
                    limits.create(**of, window=window, amount=amount or None, warned_on=warned)


def move_plans(apps, limits):
    accounts = apps.get_model("billing", "BillingAccount").objects
    is_new = not accounts.exists()
    for plan in apps.get_model("billing", "Plan").objects.all():
        of = {"set_by": "plan", "plan": plan}
        rows = {(unit, window): getattr(plan, name) for name, (unit, window) in COLUMNS.items()}
        if plan.max_playbooks is not None:
            # A plan allowed ten stored playbooks for each active one, up to the setting.
            most = limits.filter(plan=None, unit="stored_playbooks").first()
            stored = [10 * plan.max_playbooks, *([most.amount] if most else [])]
            rows["stored_playbooks", "any"] = min(stored)
        if is_new:
            rows |= {(unit, window): n for unit, window, n in NEW.get(plan.slug, ())}
        for (unit, window), amount in rows.items():
            if amount is not None:
                limits.create(**of, unit=unit, window=window, amount=amount)
        # It has no seats, so it is not called a team's.
        if plan.slug == "team" and plan.name == "Team":
            plan.name = "Scale"
            if is_new:
                plan.slug, plan.price_lookup_key = "scale", "ace_scale_monthly"
            plan.save()
    given = accounts.filter(status__in=("active", "trialing"), stripe_subscription_id="")
    given.exclude(plan=None).update(complimentary_plan=F("plan"), plan=None, status="free")


def move_reservations(apps):
    """Whose key each call used, and what running calls reserve of a plan month."""
    calls = apps.get_model("billing", "UsageRecord").objects
    circuits = apps.get_model("evolution", "ProviderCircuit").objects.filter(is_user_key=True)
    calls.filter(credential__in=list(circuits.values_list("key", flat=True))).update(own_key=True)
    periods = apps.get_model("billing", "QuotaPeriod").objects
    for hold in apps.get_model("billing", "QuotaHold").objects.filter(resource="tokens").iterator():
        call, period = calls.filter(pk=hold.holder_id, status="started"), hold.period_id
        if call.update(held_tokens=hold.amount, quota_period_id=period):
            periods.filter(pk=period).update(usd_held=F("usd_held") + call.get().held_usd)
        else:
            periods.filter(pk=period).update(tokens_held=F("tokens_held") - hold.amount)


def move(apps, schema_editor):
    limits = apps.get_model("billing", "Limit").objects
    move_settings(limits)
    move_rows(apps, limits)
    move_plans(apps, limits)
    move_reservations(apps)


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0003_add_limits'),
        ('evolution', '0002_circuit_of_user_key'),
    ]

    operations = [migrations.RunPython(move, migrations.RunPython.noop)]
