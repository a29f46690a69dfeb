"""The plans that every installation starts with. Staff changes them; nothing brings them back."""

from django.db import migrations

from billing.standard_plans import STANDARD


def add_standard_plans(apps, schema_editor):
    plans = apps.get_model("billing", "Plan").objects
    for fields in STANDARD:
        fresh = dict(fields)
        plans.get_or_create(slug=fresh.pop("slug"), defaults=fresh)


class Migration(migrations.Migration):

    dependencies = [
        ("billing", "0006_plans_and_quota"),
    ]

    operations = [
        # Backwards: the table goes with the migration before.
        migrations.RunPython(add_standard_plans, migrations.RunPython.noop),
    ]
