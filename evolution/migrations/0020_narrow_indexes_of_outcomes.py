"""Narrower indexes of outcomes; who reported with what is counted, as tallies are, by triggers.

The triggers come before the count of what there is: from then on older processes count alike.
"""

import django.db.models.deletion
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


INDEXES = (
    models.Index(fields=["created_at"], name="outcome_newest"),
    models.Index(fields=["playbook", "created_at"], name="outcome_of_playbook"),
    models.Index(fields=["version", "created_at"], name="outcome_of_version"),
    models.Index(fields=["playbook", "status", "created_at"], condition=~models.Q(("status", "success")), name="outcome_by_status"),
    models.Index(fields=["playbook", "signal", "created_at"], condition=~models.Q(("signal", "self_report")), name="outcome_by_signal"),
    models.Index(fields=["job"], condition=models.Q(job__isnull=False), name="outcome_of_job"),
    models.Index(fields=["app"], condition=models.Q(app__isnull=False), name="outcome_of_app"),
    models.Index(fields=["playbook", "created_at"], condition=models.Q(processed_at=None), name="outcome_unprocessed"),
    models.Index(fields=["playbook", "created_at"], condition=~models.Q(set_aside_reason=""), name="outcome_set_aside"),
)


class ReplaceIndexes(migrations.operations.base.Operation):
    """All indexes in one operation: each of twenty would render the models that refer to outcomes.

    Without AlterField: on SQLite it would rebuild the table, which loses its triggers.
    """

    reversible = False

    def describe(self):
        return "Narrow the indexes of outcomes"

    def state_forwards(self, app_label, state):
        outcome = state.models[app_label, "outcome"]
        kept = [index for index in outcome.options["indexes"] if index.name not in OLD_INDEXES]
        outcome.options["indexes"] = [*kept, *INDEXES]
        for name in ("api_key", "app", "job", "reported_by"):
            outcome.fields[name] = outcome.fields[name].clone()
            outcome.fields[name].db_index = False
        state.reload_model(app_label, "outcome", delay=True)

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        on_sqlite = schema_editor.connection.vendor == "sqlite"
        for name in (*OLD_INDEXES, *OF_KEYS, *(ONLY_ON_POSTGRES if on_sqlite else ())):
            schema_editor.execute(f"DROP INDEX {name}")
        outcome = to_state.apps.get_model(app_label, "outcome")
        for index in INDEXES:
            schema_editor.add_index(outcome, index)


class Migration(migrations.Migration):

    dependencies = [
        ("evolution", "0019_learn_speed_of_provider"),
        ("accounts", "__first__"),
        ("playbooks", "__first__"),
    ]

    operations = [
        ReplaceIndexes(),
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
