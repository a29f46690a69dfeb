"""Narrower indexes of outcomes; who reported with what is counted, as tallies are, by triggers.

The triggers come before the count of what there is: from then on older processes count alike.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

OUTCOMES, TALLY = "evolution_outcome", "evolution_reportertally"
OLD_INDEXES = (
    "evolution_o_created_d45b65_idx",
    "evolution_o_playboo_ad75cb_idx",
    "evolution_o_playboo_d05d13_idx",
    "evolution_o_playboo_3a0ff0_idx",
    "evolution_o_playboo_9fa9f9_idx",
    "evolution_o_version_065eac_idx",
    "evolution_o_playboo_7e1275_idx",
    "outcome_unprocessed",
    "outcome_set_aside",
)
OF_KEYS = ("evolution_outcome_job_id_43294f66", "evolution_outcome_app_id_f290f644")
ONLY_ON_POSTGRES = (  # a tenth of SQLite's size; a deleted account's rows are looked up by them
    "evolution_outcome_reported_by_id_cdfe0707",
    "evolution_outcome_api_key_id_16a51c4e",
)


def reporter(row):
    ids = (f"COALESCE(CAST({row}.{name}_id AS text), '')" for name in ("api_key", "app", "reported_by"))
    return " || '/' || ".join(ids)


def add_up(source, least, most, one):
    return (
        f"INSERT INTO {TALLY} (playbook_id, client, reporter, outcomes, first_at, last_at) "
        f"SELECT o.playbook_id, o.client, {reporter('o')}, {one}, MIN(o.created_at), MAX(o.created_at) "
        f"FROM {source} o WHERE true GROUP BY 1, 2, 3 ON CONFLICT (playbook_id, client, reporter) "
        f"DO UPDATE SET outcomes = {TALLY}.outcomes + excluded.outcomes, "
        f"first_at = {least}({TALLY}.first_at, excluded.first_at), "
        f"last_at = {most}({TALLY}.last_at, excluded.last_at);"
    )


def create_triggers(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        names = ("playbook_id", "client", "api_key_id", "app_id", "reported_by_id", "created_at")
        row = f"(SELECT {', '.join(f'NEW.{name} AS {name}' for name in names)})"
        scalar = ("MIN", "MAX")
        schema_editor.execute(
            f"CREATE TRIGGER {OUTCOMES}_reported AFTER INSERT ON {OUTCOMES} "
            f"BEGIN {add_up(row, *scalar, 'COUNT(*)')} END"
        )
        schema_editor.execute(
            f"CREATE TRIGGER {OUTCOMES}_moved AFTER UPDATE OF created_at ON {OUTCOMES} "
            f"WHEN NEW.created_at <> OLD.created_at BEGIN {add_up(row, *scalar, '0')} END"
        )
    else:
        scalar = ("LEAST", "GREATEST")
        body = {"reported": ("added", "COUNT(*)"), "moved": ("(SELECT NEW.*)", "0")}
        for name, (row, one) in body.items():
            schema_editor.execute(
                f"CREATE FUNCTION {OUTCOMES}_{name}() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$ BEGIN {add_up(row, *scalar, one)} RETURN NULL; END $$"
            )
        schema_editor.execute(
            f"CREATE TRIGGER {OUTCOMES}_reported AFTER INSERT ON {OUTCOMES} REFERENCING NEW TABLE "
            f"AS added FOR EACH STATEMENT EXECUTE FUNCTION {OUTCOMES}_reported()"
        )
        schema_editor.execute(
            f"CREATE TRIGGER {OUTCOMES}_moved AFTER UPDATE OF created_at ON {OUTCOMES} FOR EACH ROW "
            f"WHEN (NEW.created_at <> OLD.created_at) EXECUTE FUNCTION {OUTCOMES}_moved()"
        )
    schema_editor.execute(add_up(OUTCOMES, *scalar, "COUNT(*)"))


def drop_indexes_of_keys(apps, schema_editor):
    on_sqlite = schema_editor.connection.vendor == "sqlite"
    for name in (*OF_KEYS, *(ONLY_ON_POSTGRES if on_sqlite else ())):
        schema_editor.execute(f"DROP INDEX {name}")


class Migration(migrations.Migration):

    dependencies = [
        ("evolution", "0019_learn_speed_of_provider"),
        ("accounts", "__first__"),
        ("playbooks", "__first__"),
    ]

    operations = [
        *(migrations.RemoveIndex("outcome", name) for name in OLD_INDEXES),
        # In the state only: on SQLite an AlterField would rebuild the table and lose its triggers.
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(drop_indexes_of_keys, migrations.RunPython.noop)],
            state_operations=[
                migrations.AlterField("outcome", "api_key", models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="accounts.apikey")),
                migrations.AlterField("outcome", "reported_by", models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to=settings.AUTH_USER_MODEL)),
                migrations.AlterField("outcome", "app", models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="accounts.connectedapp")),
                migrations.AlterField("outcome", "job", models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="outcomes", to="evolution.evolutionjob")),
            ],
        ),
        migrations.AddIndex("outcome", models.Index(fields=["created_at"], name="outcome_newest")),
        migrations.AddIndex("outcome", models.Index(fields=["playbook", "created_at"], name="outcome_of_playbook")),
        migrations.AddIndex("outcome", models.Index(condition=models.Q(("status", "success"), _negated=True), fields=["playbook", "status", "created_at"], name="outcome_by_status")),
        migrations.AddIndex("outcome", models.Index(condition=models.Q(("signal", "self_report"), _negated=True), fields=["playbook", "signal", "created_at"], name="outcome_by_signal")),
        migrations.AddIndex("outcome", models.Index(fields=["version", "created_at"], name="outcome_of_version")),
        migrations.AddIndex("outcome", models.Index(condition=models.Q(("job__isnull", False)), fields=["job"], name="outcome_of_job")),
        migrations.AddIndex("outcome", models.Index(condition=models.Q(("app__isnull", False)), fields=["app"], name="outcome_of_app")),
        migrations.AddIndex("outcome", models.Index(condition=models.Q(("processed_at", None)), fields=["playbook", "created_at"], name="outcome_unprocessed")),
        migrations.AddIndex("outcome", models.Index(condition=models.Q(("set_aside_reason", ""), _negated=True), fields=["playbook", "created_at"], name="outcome_set_aside")),
        migrations.CreateModel(
            name="ReporterTally",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("client", models.CharField(blank=True, max_length=100)),
                ("reporter", models.CharField(help_text="ids of key, app and user: key/app/user", max_length=110)),
                ("outcomes", models.PositiveIntegerField()),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("playbook", models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="playbooks.playbook")),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("playbook", "client", "reporter"), name="reporter_tally_once")],
            },
        ),
        migrations.RunPython(create_triggers, migrations.RunPython.noop),
    ]
