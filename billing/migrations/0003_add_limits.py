"""One table of limits; what a call and a job reserve stands in their own rows.

The ledger's triggers are dropped here and created again, with what they count now, in 0005.
"""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models

LEDGER = "billing_usagerecord"
DROP = {
    "sqlite": [f"DROP TRIGGER {LEDGER}_begun", f"DROP TRIGGER {LEDGER}_changed"],
    "postgresql": [f"DROP FUNCTION {LEDGER}_sum() CASCADE"],
}


def drop_sums(apps, schema_editor):
    for statement in DROP[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0002_keep_usage_of_deleted_accounts'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunPython(drop_sums, migrations.RunPython.noop),
        migrations.CreateModel(
            name='Limit',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('set_by', models.CharField(choices=[('operator', 'Operator'), ('owner', 'Owner'), ('plan', 'Plan')], default='operator', max_length=10)),
                ('scope', models.CharField(choices=[('server', 'the whole server'), ('account', 'each account'), ('playbook', 'each playbook')], default='account', max_length=10)),
                ('playbook_id', models.UUIDField(blank=True, null=True)),
                ('unit', models.CharField(choices=[('usd', 'US$ of model calls'), ('tokens', 'tokens'), ('evolutions', 'evolutions'), ('playbooks', 'active playbooks'), ('keys', 'API keys'), ('stored_playbooks', 'stored playbooks'), ('stored_versions', 'stored versions'), ('stored_mb', 'stored MB'), ('reports', 'reports that may start evolutions')], max_length=20)),
                ('window', models.CharField(choices=[('hour', 'an hour'), ('day', 'a day'), ('month', 'a month'), ('any', 'at any time')], default='month', max_length=10)),
                ('amount', models.DecimalField(blank=True, decimal_places=2, help_text='empty: no limit', max_digits=16, null=True)),
                ('until', models.DateTimeField(blank=True, help_text='empty: for good', null=True)),
                ('stops', models.BooleanField(default=True, help_text='off: warn only')),
                ('warn_percent', models.PositiveSmallIntegerField(default=80, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(100)])),
                ('warned_on', models.DateField(editable=False, help_text='day of the last warning', null=True)),
            ],
            options={
                'ordering': ('unit', 'window'),
            },
        ),
        migrations.CreateModel(
            name='StripeEvent',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('event_id', models.CharField(max_length=255, unique=True)),
                ('type', models.CharField(blank=True, max_length=100)),
                ('customer_id', models.CharField(blank=True, db_index=True, max_length=255)),
                ('result', models.CharField(choices=[('processed', 'Processed'), ('ignored', 'nothing to do'), ('failed', 'failed; Stripe sends it again'), ('rejected', 'rejected: bad signature')], max_length=10)),
                ('detail', models.CharField(blank=True, max_length=200)),
                ('attempts', models.PositiveIntegerField(default=1)),
            ],
            options={
                'verbose_name': 'Stripe event',
                'ordering': ('-updated_at',),
            },
        ),
        migrations.CreateModel(
            name='TrialMark',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('digest', models.CharField(max_length=64, unique=True)),
                ('subscription_id', models.CharField(help_text='the trial itself', max_length=255)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.AddField(
            model_name='billingaccount',
            name='complimentary_plan',
            field=models.ForeignKey(blank=True, help_text='applies without payment while no paid plan does', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.plan'),
        ),
        migrations.AddField(
            model_name='billingaccount',
            name='complimentary_until',
            field=models.DateTimeField(blank=True, help_text='empty: until it is withdrawn', null=True),
        ),
        migrations.AddField(
            model_name='deletedaccountusage',
            name='usd_used',
            field=models.DecimalField(db_default=0, decimal_places=6, default=0, max_digits=14),
        ),
        migrations.AddField(
            model_name='plan',
            name='stripe_prices',
            field=models.JSONField(db_default={}, default=dict, editable=False, help_text='every price of the plan by id, old ones too'),
        ),
        migrations.AddField(
            model_name='plan',
            name='stripe_product_id',
            field=models.CharField(db_default='', default='', editable=False, max_length=255),
        ),
        migrations.AddField(
            model_name='plan',
            name='trial_percent',
            field=models.PositiveSmallIntegerField(db_default=20, default=20, help_text='of the monthly limits that a trial may use'),
        ),
        migrations.AddField(
            model_name='quotaperiod',
            name='usd_held',
            field=models.DecimalField(db_default=0, decimal_places=6, default=0, max_digits=14),
        ),
        migrations.AddField(
            model_name='quotaperiod',
            name='usd_used',
            field=models.DecimalField(db_default=0, decimal_places=6, default=0, max_digits=14),
        ),
        migrations.AddField(
            model_name='usagerecord',
            name='held_tokens',
            field=models.PositiveIntegerField(db_default=0, default=0, help_text='reserved of the plan while the call runs'),
        ),
        migrations.AddField(
            model_name='usagerecord',
            name='own_key',
            field=models.BooleanField(db_default=False, default=False, help_text="with the account's own key, not the operator's"),
        ),
        migrations.AddField(
            model_name='usagerecord',
            name='quota_period_id',
            field=models.UUIDField(help_text='the plan month that counts the call', null=True),
        ),
        migrations.AlterField(
            model_name='plan',
            name='display_price',
            field=models.CharField(blank=True, help_text="shown until billing_setup has read Stripe's price", max_length=60),
        ),
        migrations.AlterField(
            model_name='quotanotice',
            name='resource',
            field=models.CharField(choices=[('evolutions', 'Evolutions'), ('tokens', 'Tokens'), ('usd', 'Usd')], max_length=10),
        ),
        migrations.AlterField(
            model_name='quotaperiod',
            name='tokens_held',
            field=models.BigIntegerField(default=0),
        ),
        migrations.AlterField(
            model_name='quotaperiod',
            name='tokens_used',
            field=models.BigIntegerField(default=0),
        ),
        migrations.AlterField(
            model_name='usagerecord',
            name='user',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='usage_records', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddIndex(
            model_name='usagerecord',
            index=models.Index(condition=models.Q(('status', 'started')), fields=['quota_period_id'], name='usage_held_by_period'),
        ),
        migrations.AddField(
            model_name='limit',
            name='plan',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='limits', to='billing.plan'),
        ),
        migrations.AddField(
            model_name='limit',
            name='user',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='limits', to=settings.AUTH_USER_MODEL),
        ),
    ]
