"""Move the numbers of requests to Stripe into the account that they are about."""

from django.conf import settings
from django.db import migrations, models


def move_numbers(apps, schema_editor):
    accounts = apps.get_model("billing", "BillingAccount").objects
    for sync in apps.get_model("billing", "AccountSync").objects.iterator():
        accounts.filter(pk=sync.account_id).update(
            last_requested=sync.last_requested,
            last_applied=sync.last_applied,
            requested_at=sync.updated_at,
        )


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0005_remove_old_limits'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name='billingaccount',
            name='last_applied',
            field=models.PositiveBigIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddField(
            model_name='billingaccount',
            name='last_requested',
            field=models.PositiveBigIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddField(
            model_name='billingaccount',
            name='requested_at',
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.RunPython(move_numbers, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name='billingaccount',
            constraint=models.CheckConstraint(condition=models.Q(('last_applied__lte', models.F('last_requested'))), name='account_sync_in_order'),
        ),
        migrations.DeleteModel(
            name='AccountSync',
        ),
    ]
