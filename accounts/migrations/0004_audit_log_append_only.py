"""The database refuses to change the audit log, whoever asks.

On PostgreSQL neither UPDATE nor DELETE, on SQLite no UPDATE: there a delete trigger would also
stop Django's `flush`, and whoever can write the file needs no SQL. The one change that is let
through blanks an actor's e-mail, when the account is deleted.

A later migration that rebuilds this table on SQLite loses the trigger: make it again there.
"""

import django.utils.timezone
from django.db import migrations, models

TABLE = "accounts_auditentry"
KEPT = ("id", "at", "action", "actor_id", "key_prefix", "owner_id", "subject", "subject_id",
        "detail", "request_id")
SAID = "the audit log is append-only"


def changed(unlike: str) -> str:
    kept = " OR ".join(f'NEW."{name}" {unlike} OLD."{name}"' for name in KEPT)
    return f"NEW.actor <> '' OR {kept}"


SQLITE = [
    f"CREATE TRIGGER {TABLE}_no_update BEFORE UPDATE ON {TABLE} WHEN {changed('IS NOT')} "
    f"BEGIN SELECT RAISE(ABORT, '{SAID}'); END",
]
POSTGRESQL = [
    f"CREATE FUNCTION {TABLE}_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
    f"RAISE EXCEPTION '{SAID}' USING ERRCODE = 'integrity_constraint_violation'; END $$",
    f"CREATE TRIGGER {TABLE}_no_update BEFORE UPDATE ON {TABLE} FOR EACH ROW "
    f"WHEN ({changed('IS DISTINCT FROM')}) EXECUTE FUNCTION {TABLE}_refuse()",
    f"CREATE TRIGGER {TABLE}_no_delete BEFORE DELETE ON {TABLE} FOR EACH ROW "
    f"EXECUTE FUNCTION {TABLE}_refuse()",
]
UNDO = {
    "sqlite": [f"DROP TRIGGER {TABLE}_no_update"],
    "postgresql": [f"DROP FUNCTION {TABLE}_refuse() CASCADE"],
}


def protect(apps, schema_editor):
    statements = {"sqlite": SQLITE, "postgresql": POSTGRESQL}
    for statement in statements[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def unprotect(apps, schema_editor):
    for statement in UNDO[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0003_user_second_factor_required'),
    ]

    operations = [
        migrations.AlterField(
            model_name='auditentry',
            name='at',
            field=models.DateTimeField(db_index=True, default=django.utils.timezone.now, editable=False),
        ),
        migrations.RunPython(protect, unprotect),
    ]
