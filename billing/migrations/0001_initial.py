import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models

# As they were when this migration was written.
STANDARD_PLANS = (
    {"slug": "free", "name": "Free", "display_price": "0", "monthly_evolutions": 50,
     "monthly_tokens": 1_000_000, "max_playbooks": 5, "max_keys": 3, "retention_days": 30,
     "is_default": True, "position": 1},
    {"slug": "pro", "name": "Pro", "price_lookup_key": "ace_pro_monthly",
     "display_price": "29 US$ a month", "trial_days": 14, "monthly_evolutions": 1_000,
     "monthly_tokens": 30_000_000, "max_playbooks": 100, "max_keys": 25, "retention_days": 180,
     "position": 2},
    {"slug": "team", "name": "Team", "price_lookup_key": "ace_team_monthly",
     "display_price": "99 US$ a month", "monthly_evolutions": 10_000,
     "monthly_tokens": 300_000_000, "max_playbooks": None, "max_keys": None,
     "retention_days": 365, "position": 3},
)

# The ledger's costs are summed by day by the statement that writes a call, whoever writes it: a
# trigger, so that an older worker, a command and the admin count alike. A later migration that
# rebuilds the ledger's table on SQLite loses the triggers: create them again there.
LEDGER, DAYS = "billing_usagerecord", "billing_dailyspend"
COUNTED = ("user_id", "playbook_id", "credential", "created_at", "cost_usd", "held_usd", "status")
KEY = ("user_id", "playbook_id", "credential", "day")
NOBODY = {"sqlite": "'00000000000000000000000000000000'"}
NOBODY["postgresql"] = "'00000000-0000-0000-0000-000000000000'::uuid"
DAY = {"sqlite": "substr({0}created_at, 1, 10)"}
DAY["postgresql"] = "({0}created_at AT TIME ZONE 'UTC')::date"


def values(vendor: str, row: str) -> dict[str, str]:
    """What a row of the ledger (`NEW.`, `OLD.` or nothing before its columns) counts as."""
    return {
        "user_id": f"{row}user_id",
        "playbook_id": f"COALESCE({row}playbook_id, {NOBODY[vendor]})",
        "credential": f"{row}credential",
        "day": DAY[vendor].format(row),
        "spent_usd": f"COALESCE({row}cost_usd, 0) + {row}held_usd",
        "unpriced_calls": f"CASE WHEN {row}cost_usd IS NULL AND {row}status <> 'started' "
        "THEN 1 ELSE 0 END",
    }


def take_out(vendor: str) -> str:
    old = values(vendor, "OLD.")
    same = " AND ".join(f"{name} = {old[name]}" for name in KEY)
    less = rounded(vendor, f"spent_usd - ({old['spent_usd']})")
    return (
        f"UPDATE {DAYS} SET spent_usd = {less}, "
        f"unpriced_calls = unpriced_calls - ({old['unpriced_calls']}) WHERE {same};"
    )


def put_in(vendor: str) -> str:
    new = values(vendor, "NEW.")
    more = rounded(vendor, f"{DAYS}.spent_usd + excluded.spent_usd")
    return (
        f"INSERT INTO {DAYS} ({', '.join(new)}) VALUES ({', '.join(new.values())}) "
        f"ON CONFLICT ({', '.join(KEY)}) DO UPDATE SET spent_usd = {more}, "
        f"unpriced_calls = {DAYS}.unpriced_calls + excluded.unpriced_calls;"
    )


def rounded(vendor: str, sum_: str) -> str:
    """SQLite reckons in binary fractions: a millionth of a dollar stays what it is."""
    return f"ROUND({sum_}, 6)" if vendor == "sqlite" else sum_


def changed(unlike: str) -> str:
    return " OR ".join(f"NEW.{name} {unlike} OLD.{name}" for name in COUNTED)


def statements(vendor: str) -> list[str]:
    made, more = put_in(vendor), take_out(vendor)
    if vendor == "sqlite":
        return [
            f"CREATE TRIGGER {LEDGER}_begun AFTER INSERT ON {LEDGER} BEGIN {made} END",
            f"CREATE TRIGGER {LEDGER}_changed AFTER UPDATE ON {LEDGER} "
            f"WHEN {changed('IS NOT')} BEGIN {more} {made} END",
        ]
    return [
        f"CREATE FUNCTION {LEDGER}_sum() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF TG_OP = 'UPDATE' THEN {more} END IF; {made} RETURN NULL; END $$",
        f"CREATE TRIGGER {LEDGER}_begun AFTER INSERT ON {LEDGER} FOR EACH ROW "
        f"EXECUTE FUNCTION {LEDGER}_sum()",
        f"CREATE TRIGGER {LEDGER}_changed AFTER UPDATE ON {LEDGER} FOR EACH ROW "
        f"WHEN ({changed('IS DISTINCT FROM')}) EXECUTE FUNCTION {LEDGER}_sum()",
    ]


UNDO = {
    "sqlite": [f"DROP TRIGGER {LEDGER}_begun", f"DROP TRIGGER {LEDGER}_changed"],
    "postgresql": [f"DROP FUNCTION {LEDGER}_sum() CASCADE"],
}


def create_sums(apps, schema_editor):
    for statement in statements(schema_editor.connection.vendor):
        schema_editor.execute(statement)


def drop_sums(apps, schema_editor):
    for statement in UNDO[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def add_standard_plans(apps, schema_editor):
    """The plans that every installation starts with; staff changes them, nothing brings them back."""
    plans = apps.get_model("billing", "Plan").objects
    for fields in STANDARD_PLANS:
        fresh = dict(fields)
        plans.get_or_create(slug=fresh.pop("slug"), defaults=fresh)



class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='PlanActivation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('activated_at', models.DateTimeField()),
                ('first_activated_at', models.DateTimeField(null=True)),
                ('last_seen_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='Plan',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('slug', models.SlugField(max_length=40, unique=True)),
                ('name', models.CharField(max_length=60)),
                ('price_lookup_key', models.CharField(blank=True, help_text="lookup key of the Stripe price; empty: free", max_length=100)),
                ('display_price', models.CharField(blank=True, help_text='as shown to people', max_length=60)),
                ('trial_days', models.PositiveSmallIntegerField(default=0)),
                ('monthly_evolutions', models.PositiveIntegerField(blank=True, help_text='empty: unlimited', null=True)),
                ('monthly_tokens', models.PositiveBigIntegerField(blank=True, help_text='empty: unlimited', null=True)),
                ('max_playbooks', models.PositiveIntegerField(blank=True, help_text='empty: unlimited', null=True)),
                ('max_keys', models.PositiveIntegerField(blank=True, help_text='empty: unlimited', null=True)),
                ('retention_days', models.PositiveIntegerField(blank=True, help_text="for traces and notes; empty: the server's setting", null=True)),
                ('previous_retention_days', models.PositiveIntegerField(editable=False, null=True)),
                ('retention_shortened_at', models.DateTimeField(editable=False, null=True)),
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
                ('synced_at', models.DateTimeField(blank=True, help_text="last sync with Stripe", null=True)),
                ('previous_plan_ended_at', models.DateTimeField(blank=True, help_text='when the previous plan ended', null=True)),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='billing_account', to=settings.AUTH_USER_MODEL)),
                ('plan', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='accounts', to='billing.plan')),
            ],
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
                ('tokens_used', models.PositiveBigIntegerField(default=0)),
                ('tokens_held', models.PositiveBigIntegerField(default=0)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='quota_periods', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-start',),
            },
        ),
        migrations.CreateModel(
            name='QuotaNotice',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('resource', models.CharField(choices=[('evolutions', 'Evolutions'), ('tokens', 'Tokens')], max_length=10)),
                ('percent', models.PositiveSmallIntegerField()),
                ('limit', models.PositiveBigIntegerField()),
                ('sent_at', models.DateTimeField(help_text='when the email was sent', null=True)),
                ('period', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='notices', to='billing.quotaperiod')),
            ],
            options={
                'ordering': ('-created_at',),
            },
        ),
        migrations.CreateModel(
            name='QuotaHold',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('resource', models.CharField(choices=[('evolutions', 'Evolutions'), ('tokens', 'Tokens')], max_length=10)),
                ('holder_id', models.UUIDField(help_text="id of the job or of the usage record")),
                ('amount', models.PositiveBigIntegerField()),
                ('limit', models.PositiveBigIntegerField(help_text="plan limit at the time of the reservation", null=True)),
                ('expires_at', models.DateTimeField(db_index=True)),
                ('period', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='holds', to='billing.quotaperiod')),
            ],
            options={
                'ordering': ('expires_at',),
            },
        ),
        migrations.CreateModel(
            name='RetentionNotice',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('plan_decided_at', models.DateTimeField()),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='retention_notice', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'abstract': False,
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
                ('ended_at', models.DateTimeField(help_text="database clock", null=True)),
                ('credential', models.CharField(blank=True, help_text='digest of the base URL and API key', max_length=64)),
                ('base_url', models.CharField(blank=True, help_text='URL called; prices depend on it', max_length=200)),
                ('model', models.CharField(max_length=100)),
                ('prompt_tokens', models.PositiveIntegerField(default=0)),
                ('completion_tokens', models.PositiveIntegerField(default=0)),
                ('cached_tokens', models.PositiveIntegerField(default=0)),
                ('total_tokens', models.PositiveIntegerField(default=0)),
                ('estimated', models.BooleanField(default=False, help_text='estimated here, not reported by the provider')),
                ('cost_usd', models.DecimalField(decimal_places=6, help_text='empty: price unknown', max_digits=12, null=True)),
                ('held_usd', models.DecimalField(decimal_places=6, default=0, help_text='reserved while the call runs', max_digits=12)),
                ('price_source', models.CharField(blank=True, max_length=100)),
                ('request_id', models.CharField(blank=True, max_length=100)),
                ('metadata', models.JSONField(blank=True, default=dict)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='usage_records', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-created_at',),
            },
        ),
        migrations.CreateModel(
            name='AccountSync',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('last_requested', models.PositiveBigIntegerField(default=0)),
                ('last_applied', models.PositiveBigIntegerField(default=0)),
                ('account', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='sync', to='billing.billingaccount')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('last_applied__lte', models.F('last_requested'))), name='account_sync_in_order')],
            },
        ),
        migrations.CreateModel(
            name='Budget',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('playbook_id', models.UUIDField(blank=True, null=True, unique=True)),
                ('usd_per_day', models.DecimalField(blank=True, decimal_places=2, max_digits=10, null=True)),
                ('usd_per_month', models.DecimalField(blank=True, decimal_places=2, max_digits=10, null=True)),
                ('warn_percent', models.PositiveSmallIntegerField(default=80, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(100)])),
                ('stops', models.BooleanField(default=True, help_text='off: warn only')),
                ('warned_day', models.DateField(editable=False, null=True)),
                ('warned_month', models.DateField(editable=False, null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='budgets', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('playbook_id',),
                'constraints': [models.UniqueConstraint(condition=models.Q(('playbook_id', None)), fields=('user',), name='unique_account_budget'), models.CheckConstraint(condition=models.Q(('usd_per_day__isnull', False), ('usd_per_month__isnull', False), _connector='OR'), name='budget_has_an_amount'), models.CheckConstraint(condition=models.Q(models.Q(('usd_per_day', None), ('usd_per_day__gt', 0), _connector='OR'), models.Q(('usd_per_month', None), ('usd_per_month__gt', 0), _connector='OR'), ('warn_percent__gte', 1), ('warn_percent__lte', 100)), name='budget_amounts_valid')],
            },
        ),
        migrations.CreateModel(
            name='CostCap',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('playbook_id', models.UUIDField(blank=True, null=True, unique=True)),
                ('usd_per_day', models.DecimalField(blank=True, decimal_places=2, max_digits=10, null=True)),
                ('usd_per_month', models.DecimalField(blank=True, decimal_places=2, max_digits=10, null=True)),
                ('user', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='cost_cap', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('playbook_id__isnull', False), ('user', None)), models.Q(('playbook_id', None), ('user__isnull', False)), _connector='OR'), name='cost_cap_has_one_owner'), models.CheckConstraint(condition=models.Q(('usd_per_day__gte', 0)), name='cost_cap_day_not_negative'), models.CheckConstraint(condition=models.Q(('usd_per_month__gte', 0)), name='cost_cap_month_not_negative')],
            },
        ),
        migrations.CreateModel(
            name='DailySpend',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('playbook_id', models.UUIDField(default=uuid.UUID('00000000-0000-0000-0000-000000000000'))),
                ('credential', models.CharField(blank=True, max_length=64)),
                ('day', models.DateField()),
                ('spent_usd', models.DecimalField(decimal_places=6, default=0, help_text='includes amounts reserved for running calls', max_digits=14)),
                ('unpriced_calls', models.IntegerField(default=0)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='daily_spend', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['playbook_id', 'day'], name='billing_dai_playboo_7b1a13_idx'), models.Index(fields=['credential', 'day'], name='billing_dai_credent_964f31_idx')],
                'constraints': [models.UniqueConstraint(fields=('user', 'day', 'playbook_id', 'credential'), name='unique_daily_spend')],
            },
        ),
        migrations.AddConstraint(
            model_name='billingaccount',
            constraint=models.UniqueConstraint(condition=models.Q(('stripe_customer_id', ''), _negated=True), fields=('stripe_customer_id',), name='unique_account_per_customer'),
        ),
        migrations.AddConstraint(
            model_name='billingaccount',
            constraint=models.UniqueConstraint(condition=models.Q(('stripe_subscription_id', ''), _negated=True), fields=('stripe_subscription_id',), name='unique_account_per_subscription'),
        ),
        migrations.AddConstraint(
            model_name='billingaccount',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('period_end', None), ('period_start', None)), ('period_end__gt', models.F('period_start')), _connector='OR'), name='account_period_ends_after_start'),
        ),
        migrations.AddConstraint(
            model_name='quotaperiod',
            constraint=models.UniqueConstraint(fields=('user', 'start'), name='unique_quota_period_start'),
        ),
        migrations.AddConstraint(
            model_name='quotaperiod',
            constraint=models.CheckConstraint(condition=models.Q(('end__gt', models.F('start'))), name='quota_period_ends_after_start'),
        ),
        migrations.AddIndex(
            model_name='quotanotice',
            index=models.Index(condition=models.Q(('sent_at', None)), fields=['created_at'], name='quota_notice_unsent'),
        ),
        migrations.AddConstraint(
            model_name='quotanotice',
            constraint=models.UniqueConstraint(fields=('period', 'resource', 'percent', 'limit'), name='unique_quota_notice'),
        ),
        migrations.AddConstraint(
            model_name='quotahold',
            constraint=models.UniqueConstraint(fields=('resource', 'holder_id'), name='unique_quota_hold'),
        ),
        migrations.AddIndex(
            model_name='usagerecord',
            index=models.Index(fields=['user', 'created_at'], name='billing_usa_user_id_16bc03_idx'),
        ),
        migrations.AddIndex(
            model_name='usagerecord',
            index=models.Index(fields=['playbook_id', 'created_at'], name='billing_usa_playboo_58060d_idx'),
        ),
        migrations.AddIndex(
            model_name='usagerecord',
            index=models.Index(fields=['credential', 'created_at'], name='billing_usa_credent_85f100_idx'),
        ),
        migrations.AddIndex(
            model_name='usagerecord',
            index=models.Index(condition=models.Q(('status', 'started')), fields=['created_at'], name='usage_in_progress'),
        ),
        migrations.AddConstraint(
            model_name='usagerecord',
            constraint=models.UniqueConstraint(fields=('job_id', 'step', 'attempt'), name='unique_usage_per_attempt'),
        ),
        migrations.RunPython(add_standard_plans, migrations.RunPython.noop),
        migrations.RunPython(create_sums, drop_sums),
    ]
