"""The tables as of November 2026, at once: a new installation starts in half the time.

The ledger's costs are summed by the statement that writes a call, whoever writes it: a trigger, so
that a command and the admin count alike. A later migration that rebuilds the ledger's table on
SQLite loses the triggers: create them again there.
"""

import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models

LEDGER, DAYS, MONTHS = "billing_usagerecord", "billing_dailyspend", "billing_quotaperiod"
KEY = ("user_id", "playbook_id", "own_key", "day")
COUNTED = (
    *("user_id", "playbook_id", "own_key", "created_at", "cost_usd", "held_usd", "status"),
    *("total_tokens", "held_tokens", "quota_period_id"),
)
NOBODY = {"sqlite": "'00000000000000000000000000000000'"}
NOBODY["postgresql"] = "'00000000-0000-0000-0000-000000000000'::uuid"
DAY = {"sqlite": "substr({0}created_at, 1, 10)"}
DAY["postgresql"] = "({0}created_at AT TIME ZONE 'UTC')::date"


def values(vendor, row):
    """What a row of the ledger (`NEW.`, `OLD.` or nothing before its columns) counts as."""
    return {
        "user_id": f"COALESCE({row}user_id, {NOBODY[vendor]})",
        "playbook_id": f"COALESCE({row}playbook_id, {NOBODY[vendor]})",
        "own_key": f"{row}own_key",
        "day": DAY[vendor].format(row),
        "spent_usd": f"COALESCE({row}cost_usd, 0) + {row}held_usd",
        "unpriced_calls": f"CASE WHEN {row}cost_usd IS NULL AND {row}status <> 'started' "
        "THEN 1 ELSE 0 END",
    }


def take_out(vendor):
    old = values(vendor, "OLD.")
    same = " AND ".join(f"{name} = {old[name]}" for name in KEY)
    less = rounded(vendor, f"spent_usd - ({old['spent_usd']})")
    return (
        f"UPDATE {DAYS} SET spent_usd = {less}, "
        f"unpriced_calls = unpriced_calls - ({old['unpriced_calls']}) WHERE {same};"
    )


def put_in(vendor, row="NEW."):
    new = values(vendor, row)
    more = rounded(vendor, f"{DAYS}.spent_usd + excluded.spent_usd")
    return (
        f"INSERT INTO {DAYS} ({', '.join(new)}) VALUES ({', '.join(new.values())}) "
        f"ON CONFLICT ({', '.join(KEY)}) DO UPDATE SET spent_usd = {more}, "
        f"unpriced_calls = {DAYS}.unpriced_calls + excluded.unpriced_calls;"
    )


def count_month(vendor, row, sign):
    """The plan month of the call, after the day: the order in which everybody locks the two."""
    amounts = {
        "tokens_used": f"{row}total_tokens",
        "tokens_held": f"{row}held_tokens",
        "usd_used": f"COALESCE({row}cost_usd, 0)",
        "usd_held": f"{row}held_usd",
    }
    sets = [f"{name} = {rounded(vendor, f'{name} {sign} {what}')}" for name, what in amounts.items()]
    return f"UPDATE {MONTHS} SET {', '.join(sets)} WHERE id = {row}quota_period_id;"


def rounded(vendor, sum_):
    """SQLite reckons in binary fractions: a millionth of a dollar stays what it is."""
    return f"ROUND({sum_}, 6)" if vendor == "sqlite" else sum_


def changed(unlike):
    return " OR ".join(f"NEW.{name} {unlike} OLD.{name}" for name in COUNTED)


def statements(vendor):
    made = f"{put_in(vendor)} {count_month(vendor, 'NEW.', '+')}"
    less = f"{take_out(vendor)} {put_in(vendor)} "
    less += f"{count_month(vendor, 'OLD.', '-')} {count_month(vendor, 'NEW.', '+')}"
    if vendor == "sqlite":
        return [
            f"CREATE TRIGGER {LEDGER}_begun AFTER INSERT ON {LEDGER} BEGIN {made} END",
            f"CREATE TRIGGER {LEDGER}_changed AFTER UPDATE ON {LEDGER} "
            f"WHEN {changed('IS NOT')} BEGIN {less} END",
        ]
    return [
        f"CREATE FUNCTION {LEDGER}_sum() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF TG_OP = 'UPDATE' THEN {less} ELSE {made} END IF; RETURN NULL; END $$",
        f"CREATE TRIGGER {LEDGER}_begun AFTER INSERT ON {LEDGER} FOR EACH ROW "
        f"EXECUTE FUNCTION {LEDGER}_sum()",
        f"CREATE TRIGGER {LEDGER}_changed AFTER UPDATE ON {LEDGER} FOR EACH ROW "
        f"WHEN ({changed('IS DISTINCT FROM')}) EXECUTE FUNCTION {LEDGER}_sum()",
    ]


def create_sums(apps, schema_editor):
    for statement in statements(schema_editor.connection.vendor):
        schema_editor.execute(statement)


# As they were when this migration was written. The amounts are by unit and window.
STANDARD_PLANS = (
    ({"slug": "free", "name": "Free", "display_price": "0", "retention_days": 30,
      "is_default": True, "position": 1},
     {("evolutions", "month"): 50, ("tokens", "month"): 1_000_000, ("playbooks", "any"): 5,
      ("keys", "any"): 3, ("stored_playbooks", "any"): 50, ("stored_mb", "any"): 100,
      ("reports", "hour"): 100}),
    ({"slug": "pro", "name": "Pro", "price_lookup_key": "ace_pro_monthly",
      "display_price": "$29 a month", "trial_days": 14, "retention_days": 180, "position": 2},
     {("evolutions", "month"): 1_000, ("tokens", "month"): 30_000_000, ("playbooks", "any"): 100,
      ("keys", "any"): 25, ("stored_playbooks", "any"): 1_000, ("usd", "month"): 15,
      ("reports", "hour"): 1_000}),
    ({"slug": "scale", "name": "Scale", "price_lookup_key": "ace_scale_monthly",
      "display_price": "$99 a month", "retention_days": 365, "position": 3},
     {("evolutions", "month"): 10_000, ("tokens", "month"): 300_000_000, ("usd", "month"): 50,
      ("reports", "hour"): 5_000}),
)
OPERATORS_LIMITS = {
    ("stored_playbooks", "any"): 1_000, ("stored_versions", "any"): 50_000, ("stored_mb", "any"): 2_000,
}


def add_plans_and_limits(apps, schema_editor):
    """What every installation starts with; staff changes it, nothing brings it back."""
    plans, limits = apps.get_model("billing", "Plan").objects, apps.get_model("billing", "Limit").objects
    for fields, amounts in (({}, OPERATORS_LIMITS), *STANDARD_PLANS):
        of = {"set_by": "plan", "plan": plans.create(**fields)} if fields else {"set_by": "operator"}
        for (unit, window), amount in amounts.items():
            limits.create(**of, unit=unit, window=window, amount=amount)


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('billing', '0001_initial'),
        ('billing', '0002_keep_usage_of_deleted_accounts'),
        ('billing', '0003_add_limits'),
        ('billing', '0004_move_limits'),
        ('billing', '0005_remove_old_limits'),
        ('billing', '0006_number_requests_in_accounts'),
        ('billing', '0007_keep_notices_in_quota_periods'),
    ]

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='DeletedAccountUsage',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('email_digest', models.CharField(help_text='keyed, no address', max_length=64, unique=True)),
                ('end', models.DateTimeField(db_index=True)),
                ('evolutions_used', models.PositiveIntegerField(default=0)),
                ('tokens_used', models.PositiveBigIntegerField(default=0)),
                ('usd_used', models.DecimalField(db_default=0, decimal_places=6, default=0, max_digits=14)),
            ],
            options={
                'abstract': False,
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
        migrations.CreateModel(
            name='DailySpend',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('user_id', models.UUIDField(default=uuid.UUID('00000000-0000-0000-0000-000000000000'))),
                ('playbook_id', models.UUIDField(default=uuid.UUID('00000000-0000-0000-0000-000000000000'))),
                ('own_key', models.BooleanField(default=False)),
                ('day', models.DateField()),
                ('spent_usd', models.DecimalField(decimal_places=6, default=0, help_text='includes amounts reserved for running calls', max_digits=14)),
                ('unpriced_calls', models.IntegerField(default=0)),
            ],
            options={
                'indexes': [models.Index(fields=['playbook_id', 'day'], name='billing_dai_playboo_7b1a13_idx'), models.Index(fields=['own_key', 'day'], name='billing_dai_own_key_093205_idx')],
                'constraints': [models.UniqueConstraint(fields=('user_id', 'day', 'playbook_id', 'own_key'), name='unique_daily_spend')],
            },
        ),
        migrations.CreateModel(
            name='Plan',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('slug', models.SlugField(max_length=40, unique=True)),
                ('name', models.CharField(max_length=60)),
                ('price_lookup_key', models.CharField(blank=True, help_text='lookup key of the Stripe price; empty: free', max_length=100)),
                ('display_price', models.CharField(blank=True, help_text="shown until billing_setup has read Stripe's price", max_length=60)),
                ('stripe_prices', models.JSONField(db_default={}, default=dict, editable=False, help_text='every price of the plan by id, old ones too')),
                ('stripe_product_id', models.CharField(db_default='', default='', editable=False, max_length=255)),
                ('trial_days', models.PositiveSmallIntegerField(default=0)),
                ('trial_percent', models.PositiveSmallIntegerField(db_default=20, default=20, help_text='of the monthly limits that a trial may use')),
                ('retention_days', models.PositiveIntegerField(blank=True, help_text="for traces and notes; empty: the server's setting", null=True)),
                ('is_default', models.BooleanField(default=False, help_text='for accounts without another plan')),
                ('is_active', models.BooleanField(default=True, help_text='customers can choose it')),
                ('position', models.PositiveSmallIntegerField(default=0)),
            ],
            options={
                'ordering': ('position', 'slug'),
                'constraints': [models.UniqueConstraint(condition=models.Q(('is_default', True)), fields=('is_default',), name='unique_default_plan'), models.UniqueConstraint(condition=models.Q(('price_lookup_key', ''), _negated=True), fields=('price_lookup_key',), name='unique_plan_price_lookup_key'), models.CheckConstraint(condition=models.Q(('is_default', False), models.Q(('is_active', True), ('price_lookup_key', '')), _connector='OR'), name='default_plan_is_free'), models.CheckConstraint(condition=models.Q(('retention_days', None), ('retention_days__gt', 0), _connector='OR'), name='plan_retention_positive')],
            },
        ),
        migrations.CreateModel(
            name='PriceOverride',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('model', models.CharField(help_text='model name as shown in usage; * matches any characters: gpt-4o-mini*', max_length=100)),
                ('base_url', models.CharField(blank=True, help_text='only calls to URLs with this prefix; empty: every URL', max_length=200, verbose_name='base URL')),
                ('input_usd', models.DecimalField(decimal_places=6, max_digits=14, verbose_name='input, US$')),
                ('cached_usd', models.DecimalField(blank=True, decimal_places=6, help_text='empty: same as input', max_digits=14, null=True, verbose_name='cached input, US$')),
                ('output_usd', models.DecimalField(decimal_places=6, max_digits=14, verbose_name='output, US$')),
                ('valid_from', models.DateTimeField(blank=True, help_text='empty: no start', null=True)),
                ('valid_until', models.DateTimeField(blank=True, help_text='empty: no end', null=True)),
                ('note', models.CharField(blank=True, help_text='source of the price', max_length=200)),
                ('version', models.PositiveIntegerField(default=1, editable=False)),
            ],
            options={
                'ordering': ('model', 'base_url', '-valid_from'),
                'constraints': [models.CheckConstraint(condition=models.Q(('input_usd__gte', 0), ('output_usd__gte', 0), models.Q(('cached_usd', None), ('cached_usd__gte', 0), _connector='OR')), name='price_override_not_negative'), models.CheckConstraint(condition=models.Q(('valid_from', None), ('valid_until', None), ('valid_until__gt', models.F('valid_from')), _connector='OR'), name='price_override_ends_after_start')],
            },
        ),
        migrations.CreateModel(
            name='QuotaPeriod',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('start', models.DateTimeField()),
                ('end', models.DateTimeField()),
                ('evolutions_used', models.PositiveIntegerField(default=0)),
                ('evolutions_held', models.PositiveIntegerField(default=0)),
                ('tokens_used', models.BigIntegerField(default=0)),
                ('tokens_held', models.BigIntegerField(default=0)),
                ('usd_used', models.DecimalField(db_default=0, decimal_places=6, default=0, max_digits=14)),
                ('usd_held', models.DecimalField(db_default=0, decimal_places=6, default=0, max_digits=14)),
                ('waited_for', models.JSONField(editable=False, help_text='limits, by resource, for which something had to wait', null=True)),
                ('notified', models.JSONField(editable=False, help_text='last e-mail, by resource', null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='quota_periods', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-start',),
                'constraints': [models.UniqueConstraint(fields=('user', 'start'), name='unique_quota_period_start'), models.CheckConstraint(condition=models.Q(('end__gt', models.F('start'))), name='quota_period_ends_after_start')],
            },
        ),
        migrations.CreateModel(
            name='UsageRecord',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('playbook_id', models.UUIDField(null=True)),
                ('job_id', models.UUIDField(null=True)),
                ('session_id', models.UUIDField(db_index=True, null=True)),
                ('api_key_id', models.UUIDField(help_text='key that sent the report, else the key that triggered the evolution', null=True)),
                ('step', models.CharField(help_text='curate, reflect:<outcome id>, …', max_length=80)),
                ('attempt', models.PositiveIntegerField(help_text='number of this API call within its step')),
                ('operation', models.CharField(choices=[('reflect', 'Reflect'), ('curate', 'Curate'), ('generate', 'Generate'), ('judge', 'Judge'), ('embed', 'Embed')], max_length=10)),
                ('status', models.CharField(choices=[('started', 'Started'), ('answered', 'Answered'), ('failed', 'Failed')], default='started', max_length=10)),
                ('ended_at', models.DateTimeField(help_text='database clock', null=True)),
                ('credential', models.CharField(blank=True, help_text='digest of the base URL and API key', max_length=64)),
                ('own_key', models.BooleanField(db_default=False, default=False, help_text="with the account's own key, not the operator's")),
                ('quota_period_id', models.UUIDField(help_text='the plan month that counts the call', null=True)),
                ('base_url', models.CharField(blank=True, help_text='URL called; prices depend on it', max_length=200)),
                ('model', models.CharField(max_length=100)),
                ('prompt_tokens', models.PositiveIntegerField(default=0)),
                ('completion_tokens', models.PositiveIntegerField(default=0)),
                ('cached_tokens', models.PositiveIntegerField(default=0)),
                ('total_tokens', models.PositiveIntegerField(default=0)),
                ('estimated', models.BooleanField(default=False, help_text='estimated here, not reported by the provider')),
                ('cost_usd', models.DecimalField(decimal_places=6, help_text='empty: price unknown', max_digits=12, null=True)),
                ('held_usd', models.DecimalField(decimal_places=6, default=0, help_text='reserved while the call runs', max_digits=12)),
                ('held_tokens', models.PositiveIntegerField(db_default=0, default=0, help_text='reserved of the plan while the call runs')),
                ('price_source', models.CharField(blank=True, max_length=100)),
                ('request_id', models.CharField(blank=True, max_length=100)),
                ('metadata', models.JSONField(blank=True, default=dict)),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='usage_records', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-created_at',),
                'indexes': [models.Index(fields=['user', 'created_at'], name='billing_usa_user_id_16bc03_idx'), models.Index(fields=['playbook_id', 'created_at'], name='billing_usa_playboo_58060d_idx'), models.Index(fields=['credential', 'created_at'], name='billing_usa_credent_85f100_idx'), models.Index(condition=models.Q(('status', 'started')), fields=['quota_period_id'], name='usage_held_by_period'), models.Index(condition=models.Q(('status', 'started')), fields=['created_at'], name='usage_in_progress')],
                'constraints': [models.UniqueConstraint(fields=('job_id', 'step', 'attempt'), name='unique_usage_per_attempt')],
            },
        ),
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
                ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='limits', to=settings.AUTH_USER_MODEL)),
                ('plan', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='limits', to='billing.plan')),
            ],
            options={
                'ordering': ('unit', 'window'),
                'constraints': [models.UniqueConstraint(condition=models.Q(('set_by', 'plan')), fields=('plan', 'unit', 'window'), name='unique_limit_of_plan'), models.UniqueConstraint(condition=models.Q(('playbook_id', None), ('user__isnull', False)), fields=('set_by', 'user', 'unit', 'window'), name='unique_limit_of_account'), models.UniqueConstraint(condition=models.Q(('playbook_id__isnull', False)), fields=('set_by', 'playbook_id', 'unit', 'window'), name='unique_limit_of_playbook'), models.UniqueConstraint(condition=models.Q(('playbook_id', None), ('set_by', 'operator'), ('user', None)), fields=('scope', 'unit', 'window'), name='unique_limit_of_all'), models.CheckConstraint(condition=models.Q(models.Q(('plan__isnull', False), ('scope', 'account'), ('set_by', 'plan'), ('user', None)), models.Q(models.Q(('set_by', 'plan'), _negated=True), ('plan', None)), _connector='OR'), name='limit_of_plan_has_plan'), models.CheckConstraint(condition=models.Q(models.Q(('set_by', 'owner'), _negated=True), models.Q(('amount__gt', 0), ('user__isnull', False)), _connector='OR'), name='limit_of_owner_has_owner_and_amount'), models.CheckConstraint(condition=models.Q(('playbook_id', None), ('scope', 'playbook'), _connector='OR'), name='limit_of_playbook_has_its_scope'), models.CheckConstraint(condition=models.Q(models.Q(('amount', None), ('amount__gte', 0), _connector='OR'), ('warn_percent__gte', 1), ('warn_percent__lte', 100)), name='limit_amounts_valid')],
            },
        ),
        migrations.CreateModel(
            name='BillingAccount',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('status', models.CharField(choices=[('free', 'Free'), ('trialing', 'Trialing'), ('active', 'Active'), ('past_due', 'Past Due'), ('canceled', 'Canceled')], default='free', max_length=10)),
                ('period_start', models.DateTimeField(blank=True, null=True)),
                ('period_end', models.DateTimeField(blank=True, null=True)),
                ('cancel_at_period_end', models.BooleanField(default=False)),
                ('grace_until', models.DateTimeField(blank=True, null=True)),
                ('trial_end', models.DateTimeField(blank=True, null=True)),
                ('stripe_customer_id', models.CharField(blank=True, max_length=255)),
                ('stripe_subscription_id', models.CharField(blank=True, max_length=255)),
                ('duplicate_subscription_id', models.CharField(blank=True, help_text='second paid subscription: cancel one of the two', max_length=255)),
                ('synced_at', models.DateTimeField(blank=True, help_text='last sync with Stripe', null=True)),
                ('last_requested', models.PositiveBigIntegerField(db_default=0, default=0, editable=False)),
                ('last_applied', models.PositiveBigIntegerField(db_default=0, default=0, editable=False)),
                ('requested_at', models.DateTimeField(editable=False, null=True)),
                ('complimentary_until', models.DateTimeField(blank=True, help_text='empty: until it is withdrawn', null=True)),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='billing_account', to=settings.AUTH_USER_MODEL)),
                ('complimentary_plan', models.ForeignKey(blank=True, help_text='applies without payment while no paid plan does', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='billing.plan')),
                ('plan', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='accounts', to='billing.plan')),
            ],
            options={
                'constraints': [models.UniqueConstraint(condition=models.Q(('stripe_customer_id', ''), _negated=True), fields=('stripe_customer_id',), name='unique_account_per_customer'), models.UniqueConstraint(condition=models.Q(('stripe_subscription_id', ''), _negated=True), fields=('stripe_subscription_id',), name='unique_account_per_subscription'), models.CheckConstraint(condition=models.Q(models.Q(('period_end', None), ('period_start', None)), ('period_end__gt', models.F('period_start')), _connector='OR'), name='account_period_ends_after_start'), models.CheckConstraint(condition=models.Q(('last_applied__lte', models.F('last_requested'))), name='account_sync_in_order')],
            },
        ),
        migrations.RunPython(add_plans_and_limits, migrations.RunPython.noop),
        migrations.RunPython(create_sums, migrations.RunPython.noop),
    ]
