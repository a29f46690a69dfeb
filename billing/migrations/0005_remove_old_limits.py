"""Remove what 0004 copied; the ledger's triggers count by plan month and by whose key as well.

The ledger's costs are summed by the statement that writes a call, whoever writes it: a trigger, so
that a command and the admin count alike. A later migration that rebuilds the ledger's table on
SQLite loses the triggers: create them again there.
"""

import uuid
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
    """Sum the ledger up again by whose key, then keep the sums."""
    vendor = schema_editor.connection.vendor
    of = values(vendor, "")
    spent, unpriced = of["spent_usd"], of["unpriced_calls"]
    key = ", ".join(of[name] for name in KEY)
    schema_editor.execute(
        f"INSERT INTO {DAYS} ({', '.join(of)}) SELECT {key}, "
        f"{rounded(vendor, f'SUM({spent})')}, SUM({unpriced}) FROM {LEDGER} GROUP BY {key}"
    )
    for statement in statements(vendor):
        schema_editor.execute(statement)


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0004_move_limits'),
        ('evolution', '0011_keep_texts_until'),
    ]

    operations = [
        migrations.DeleteModel(name='DailySpend'),
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
        migrations.DeleteModel(
            name='PlanActivation',
        ),
        migrations.RemoveField(
            model_name='billingaccount',
            name='previous_plan_ended_at',
        ),
        migrations.RemoveField(
            model_name='plan',
            name='max_keys',
        ),
        migrations.RemoveField(
            model_name='plan',
            name='max_playbooks',
        ),
        migrations.RemoveField(
            model_name='plan',
            name='monthly_evolutions',
        ),
        migrations.RemoveField(
            model_name='plan',
            name='monthly_tokens',
        ),
        migrations.RemoveField(
            model_name='plan',
            name='previous_retention_days',
        ),
        migrations.RemoveField(
            model_name='plan',
            name='retention_shortened_at',
        ),
        migrations.AddConstraint(
            model_name='limit',
            constraint=models.UniqueConstraint(condition=models.Q(('set_by', 'plan')), fields=('plan', 'unit', 'window'), name='unique_limit_of_plan'),
        ),
        migrations.AddConstraint(
            model_name='limit',
            constraint=models.UniqueConstraint(condition=models.Q(('playbook_id', None), ('user__isnull', False)), fields=('set_by', 'user', 'unit', 'window'), name='unique_limit_of_account'),
        ),
        migrations.AddConstraint(
            model_name='limit',
            constraint=models.UniqueConstraint(condition=models.Q(('playbook_id__isnull', False)), fields=('set_by', 'playbook_id', 'unit', 'window'), name='unique_limit_of_playbook'),
        ),
        migrations.AddConstraint(
            model_name='limit',
            constraint=models.UniqueConstraint(condition=models.Q(('playbook_id', None), ('set_by', 'operator'), ('user', None)), fields=('scope', 'unit', 'window'), name='unique_limit_of_all'),
        ),
        migrations.AddConstraint(
            model_name='limit',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('plan__isnull', False), ('scope', 'account'), ('set_by', 'plan'), ('user', None)), models.Q(models.Q(('set_by', 'plan'), _negated=True), ('plan', None)), _connector='OR'), name='limit_of_plan_has_plan'),
        ),
        migrations.AddConstraint(
            model_name='limit',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('set_by', 'owner'), _negated=True), models.Q(('amount__gt', 0), ('user__isnull', False)), _connector='OR'), name='limit_of_owner_has_owner_and_amount'),
        ),
        migrations.AddConstraint(
            model_name='limit',
            constraint=models.CheckConstraint(condition=models.Q(('playbook_id', None), ('scope', 'playbook'), _connector='OR'), name='limit_of_playbook_has_its_scope'),
        ),
        migrations.AddConstraint(
            model_name='limit',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('amount', None), ('amount__gte', 0), _connector='OR'), ('warn_percent__gte', 1), ('warn_percent__lte', 100)), name='limit_amounts_valid'),
        ),
        migrations.DeleteModel(
            name='Budget',
        ),
        migrations.DeleteModel(
            name='CostCap',
        ),
        migrations.DeleteModel(
            name='QuotaHold',
        ),
        migrations.DeleteModel(
            name='RetentionNotice',
        ),
        migrations.RunPython(create_sums, migrations.RunPython.noop),
    ]
