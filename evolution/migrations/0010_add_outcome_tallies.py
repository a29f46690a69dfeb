import django.db.models.deletion
from django.db import migrations, models

# Each outcome is counted by the statement that stores or corrects it, whoever sends that: a
# trigger, so that a report costs no query more, and an older process counts alike. On PostgreSQL it
# runs once for an INSERT: a row that counts 100,000 outcomes is not written 100,000 times. A later
# migration that rebuilds the table on SQLite loses the triggers: create them again there.
OUTCOMES, JOBS = "evolution_outcome", "evolution_evolutionjob"
COUNTS, TALLIES, CITATIONS = (
    "evolution_outcomecounts", "evolution_outcometally", "evolution_citationtally",
)  # fmt: skip
COLUMNS = (
    "playbook_id", "version_id", "job_id", "status", "signal", "version_assumed", "cost_usd",
    "cited_bullets", "created_at",
)  # fmt: skip
NEW_ROW = f"(SELECT {', '.join(f'NEW.{name} AS {name}' for name in COLUMNS)})"
CITED = {
    "sqlite": "json_each(o.cited_bullets) c",
    "postgresql": "LATERAL jsonb_array_elements_text(o.cited_bullets) c(value)",
}
DAY = {  # UTC
    "sqlite": "substr({}created_at, 1, 10)",
    "postgresql": "({}created_at AT TIME ZONE 'UTC')::date",
}
ID = {"sqlite": "lower(hex(randomblob(16)))", "postgresql": "gen_random_uuid()"}
NOW = {"sqlite": "strftime('%Y-%m-%d %H:%M:%f', 'now')", "postgresql": "now()"}


def sums(**conditions):
    return {
        name: f"SUM(CASE WHEN {condition} THEN 1 ELSE 0 END)"
        for name, condition in conditions.items()
    }


def add_up(vendor, table, key, figures, source, extra=None):
    """One statement that adds figures of the outcomes in `source` to the rows of a table."""
    cost = {"cost_usd": "ROUND({}, 6)" if vendor == "sqlite" else "{}"}
    more = ", ".join(
        f"{name} = " + cost.get(name, "{}").format(f"{table}.{name} + excluded.{name}")
        for name in figures
    )
    values = {**(extra or {}), **key, **figures}
    return (
        f"INSERT INTO {table} ({', '.join(values)}) SELECT {', '.join(values.values())} "
        # A training's own attempts at its samples are no outcomes of tasks.
        f"FROM {source} WHERE NOT EXISTS (SELECT 1 FROM {JOBS} j WHERE j.id = o.job_id "
        f"AND j.training_id IS NOT NULL) GROUP BY {', '.join(key.values())} "
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {more};"
    )


def count_totals(vendor, rows):
    extra = {"id": ID[vendor], "created_at": NOW[vendor], "updated_at": NOW[vendor]}
    figures = {"reported": "COUNT(*)", **sums(succeeded="o.status = 'success'")}
    return add_up(vendor, COUNTS, {"playbook_id": "o.playbook_id"}, figures, f"{rows} o", extra)


def count_by_version(vendor, rows):
    key = {name: f"o.{name}" for name in ("playbook_id", "version_id", "signal")}
    key["day"] = DAY[vendor].format("o.")
    figures = sums(
        success="o.status = 'success'",
        partial="o.status = 'partial'",
        failure="o.status = 'failure'",
        assumed="o.version_assumed",
        priced="o.cost_usd IS NOT NULL",
        priced_successes="o.cost_usd IS NOT NULL AND o.status = 'success'",
    )
    figures["cost_usd"] = "COALESCE(SUM(o.cost_usd), 0)"
    return add_up(vendor, TALLIES, key, figures, f"{rows} o")


def count_citations(vendor, rows):
    key = {"playbook_id": "o.playbook_id", "bullet_id": "c.value"}
    figures = {"tasks": "COUNT(*)", **sums(successes="o.status = 'success'")}
    return add_up(vendor, CITATIONS, key, figures, f"{rows} o CROSS JOIN {CITED[vendor]}")


def count(vendor, rows):
    counts = (count_totals, count_by_version, count_citations)
    return " ".join(one(vendor, rows) for one in counts)


def uncount(vendor):
    """Take the row before a correction out."""
    kept = f"NOT EXISTS (SELECT 1 FROM {JOBS} j WHERE j.id = OLD.job_id AND j.training_id IS NOT NULL)"
    won = "CASE WHEN OLD.status = 'success' THEN 1 ELSE 0 END"
    priced = "CASE WHEN OLD.cost_usd IS NULL THEN 0 ELSE 1 END"
    less = {
        **{s: f"CASE WHEN OLD.status = '{s}' THEN 1 ELSE 0 END" for s in ("success", "partial", "failure")},
        "assumed": "CASE WHEN OLD.version_assumed THEN 1 ELSE 0 END",
        "priced": priced,
        "priced_successes": f"({priced}) * ({won})",
        "cost_usd": "COALESCE(OLD.cost_usd, 0)",
    }
    cited = CITED[vendor].replace("LATERAL ", "").replace("o.cited_bullets", "OLD.cited_bullets")
    mine = f"playbook_id = OLD.playbook_id AND {kept}"
    return (
        f"UPDATE {COUNTS} SET reported = reported - 1, succeeded = succeeded - ({won}) WHERE {mine}; "
        f"UPDATE {TALLIES} SET {', '.join(f'{name} = {name} - ({of})' for name, of in less.items())} "
        f"WHERE version_id = OLD.version_id AND signal = OLD.signal AND day = {DAY[vendor].format('OLD.')} "
        f"AND {mine}; "
        f"DELETE FROM {TALLIES} WHERE playbook_id = OLD.playbook_id AND version_id = OLD.version_id "
        "AND success + partial + failure = 0; "
        f"UPDATE {CITATIONS} SET tasks = tasks - 1, successes = successes - ({won}) "
        f"WHERE bullet_id IN (SELECT c.value FROM {cited}) AND {mine}; "
        f"DELETE FROM {CITATIONS} WHERE playbook_id = OLD.playbook_id AND tasks = 0;"
    )


def create_triggers(apps, schema_editor):
    vendor = schema_editor.connection.vendor
    for one in (count_by_version, count_citations):
        schema_editor.execute(one(vendor, OUTCOMES))
    changed = " OR ".join(f"NEW.{name} <> OLD.{name}" for name in ("status", "signal", "created_at"))
    again = f"{uncount(vendor)} {count(vendor, NEW_ROW)}"
    if vendor == "sqlite":
        schema_editor.execute(
            f"CREATE TRIGGER {OUTCOMES}_counted AFTER INSERT ON {OUTCOMES} "
            f"BEGIN {count(vendor, NEW_ROW)} END"
        )
        schema_editor.execute(
            f"CREATE TRIGGER {OUTCOMES}_corrected AFTER UPDATE OF status, signal, created_at ON {OUTCOMES} "
            f"WHEN {changed} BEGIN {again} END"
        )
        return
    for name, body in (("counted", count(vendor, "added")), ("corrected", again)):
        schema_editor.execute(
            f"CREATE FUNCTION {OUTCOMES}_{name}() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN {body} RETURN NULL; END $$"
        )
    schema_editor.execute(
        f"CREATE TRIGGER {OUTCOMES}_counted AFTER INSERT ON {OUTCOMES} REFERENCING NEW TABLE "
        f"AS added FOR EACH STATEMENT EXECUTE FUNCTION {OUTCOMES}_counted()"
    )
    schema_editor.execute(
        f"CREATE TRIGGER {OUTCOMES}_corrected AFTER UPDATE OF status, signal, created_at ON {OUTCOMES} "
        f"FOR EACH ROW WHEN ({changed}) "
        f"EXECUTE FUNCTION {OUTCOMES}_corrected()"
    )


def drop_triggers(apps, schema_editor):
    for name in ("counted", "corrected"):
        if schema_editor.connection.vendor == "sqlite":
            schema_editor.execute(f"DROP TRIGGER {OUTCOMES}_{name}")
        else:
            schema_editor.execute(f"DROP FUNCTION {OUTCOMES}_{name}() CASCADE")


class Migration(migrations.Migration):

    dependencies = [
        ('evolution', '0009_add_outcome_reference'),
        ('playbooks', '0005_add_vote_reporter'),
    ]

    operations = [
        migrations.CreateModel(
            name='CitationTally',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('bullet_id', models.CharField(max_length=16)),
                ('tasks', models.PositiveIntegerField()),
                ('successes', models.PositiveIntegerField()),
                ('playbook', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='playbooks.playbook')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('playbook', 'bullet_id'), name='citation_tally_once')],
            },
        ),
        migrations.CreateModel(
            name='OutcomeTally',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('signal', models.CharField(choices=[('ground_truth', 'Ground Truth'), ('test', 'Test'), ('human', 'Human'), ('self_report', 'Self Report')], max_length=12)),
                ('day', models.DateField(help_text='UTC')),
                ('success', models.PositiveIntegerField()),
                ('partial', models.PositiveIntegerField()),
                ('failure', models.PositiveIntegerField()),
                ('assumed', models.PositiveIntegerField(help_text='whose report did not say what was read')),
                ('priced', models.PositiveIntegerField(help_text='whose report named a cost')),
                ('priced_successes', models.PositiveIntegerField()),
                ('cost_usd', models.DecimalField(decimal_places=6, max_digits=16)),
                ('playbook', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='playbooks.playbook')),
                ('version', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='playbooks.version')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('playbook', 'day', 'version', 'signal'), name='outcome_tally_once')],
            },
        ),
        migrations.RunPython(create_triggers, drop_triggers),
    ]
