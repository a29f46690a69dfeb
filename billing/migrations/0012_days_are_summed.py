"""The ledger's costs, summed by day: moved by the statement that writes a call, whoever writes it.

A trigger, and not code of ours: a worker of the version before, a command and the admin count alike,
and the sums of calls that were there already are made here.

A later migration that rebuilds the ledger's table on SQLite loses the triggers: make them again there.
"""

import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

LEDGER, DAYS = "billing_usagerecord", "billing_spentday"
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


def fill(vendor: str) -> str:
    found = values(vendor, "")
    sums = [f"SUM({found[name]})" if name not in KEY else found[name] for name in found]
    keys = ", ".join(found[name] for name in KEY)
    return (
        f"INSERT INTO {DAYS} ({', '.join(found)}) SELECT {', '.join(sums)} "
        f"FROM {LEDGER} GROUP BY {keys}"
    )


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


def sum_up(apps, schema_editor):
    vendor = schema_editor.connection.vendor
    if vendor == "postgresql":
        # A worker that goes on meanwhile waits: a call between the sums and the trigger is lost.
        schema_editor.execute(f"LOCK TABLE {LEDGER} IN SHARE ROW EXCLUSIVE MODE")
    schema_editor.execute(fill(vendor))
    for statement in statements(vendor):
        schema_editor.execute(statement)


def leave_off(apps, schema_editor):
    for statement in UNDO[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0011_calls_of_the_version_before'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='SpentDay',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('playbook_id', models.UUIDField(default=uuid.UUID('00000000-0000-0000-0000-000000000000'))),
                ('credential', models.CharField(blank=True, max_length=64)),
                ('day', models.DateField()),
                ('spent_usd', models.DecimalField(decimal_places=6, default=0, help_text='and what is set aside for calls', max_digits=14)),
                ('unpriced_calls', models.IntegerField(default=0)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='spent_days', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(fields=['playbook_id', 'day'], name='billing_spe_playboo_86f79e_idx'), models.Index(fields=['credential', 'day'], name='billing_spe_credent_db82e0_idx')],
                'constraints': [models.UniqueConstraint(fields=('user', 'day', 'playbook_id', 'credential'), name='spent_day_once')],
            },
        ),
        migrations.RunPython(sum_up, leave_off),
    ]
