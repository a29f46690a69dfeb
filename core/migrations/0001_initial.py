import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models


# The database refuses to change the audit log, whoever asks. On PostgreSQL neither UPDATE nor DELETE,
# on SQLite no UPDATE: there a delete trigger would also stop Django's `flush`, and whoever can write
# the file needs no SQL. The one change that is let through blanks an actor's e-mail and an entry's
# details, when the account is deleted. A later migration that rebuilds this table on SQLite loses
# the trigger: create it again there.
TABLE = "core_auditentry"
MESSAGE = "the audit log is append-only"
FIXED = ("id", "at", "action", "actor_id", "key_prefix", "owner_id", "subject", "subject_id", "request_id")


def changed(differs: str, empty: str) -> str:
    fixed = " OR ".join(f'NEW."{name}" {differs} OLD."{name}"' for name in FIXED)
    return (
        f"(NEW.actor <> '' AND NEW.actor {differs} OLD.actor) OR {fixed} "
        f"OR (NEW.detail <> {empty} AND NEW.detail {differs} OLD.detail)"
    )


NOT_ON_SQLITE = changed("IS NOT", "'{}'")
NOT_ON_POSTGRESQL = changed("IS DISTINCT FROM", "'{}'::jsonb")
CREATE = {
    "sqlite": [
        f"CREATE TRIGGER {TABLE}_no_update BEFORE UPDATE ON {TABLE} WHEN {NOT_ON_SQLITE} "
        f"BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END",
    ],
    "postgresql": [
        f"CREATE FUNCTION {TABLE}_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"RAISE EXCEPTION '{MESSAGE}' USING ERRCODE = 'integrity_constraint_violation'; END $$",
        f"CREATE TRIGGER {TABLE}_no_update BEFORE UPDATE ON {TABLE} FOR EACH ROW "
        f"WHEN ({NOT_ON_POSTGRESQL}) EXECUTE FUNCTION {TABLE}_refuse()",
        f"CREATE TRIGGER {TABLE}_no_delete BEFORE DELETE ON {TABLE} FOR EACH ROW "
        f"EXECUTE FUNCTION {TABLE}_refuse()",
    ],
}
DROP = {
    "sqlite": [f"DROP TRIGGER {TABLE}_no_update"],
    "postgresql": [f"DROP FUNCTION {TABLE}_refuse() CASCADE"],
}


def protect(apps, schema_editor):
    for statement in CREATE[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


def unprotect(apps, schema_editor):
    for statement in DROP[schema_editor.connection.vendor]:
        schema_editor.execute(statement)


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='RateCounter',
            fields=[
                ('key', models.CharField(max_length=255, primary_key=True, serialize=False)),
                ('value', models.BigIntegerField()),
                ('expires_at', models.FloatField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('at', models.DateTimeField(db_index=True, default=django.utils.timezone.now, editable=False)),
                ('action', models.CharField(help_text="the service's verb, such as revoke_api_key", max_length=60)),
                ('actor_id', models.UUIDField(help_text='the user; empty for the platform itself', null=True)),
                ('actor', models.CharField(blank=True, max_length=254)),
                ('key_prefix', models.CharField(blank=True, help_text='of the API key used', max_length=12)),
                ('owner_id', models.UUIDField(help_text='whose row it was', null=True)),
                ('subject', models.CharField(help_text='the kind of row, such as playbook', max_length=60)),
                ('subject_id', models.CharField(blank=True, max_length=64)),
                ('detail', models.JSONField(default=dict, help_text='names and figures; never texts or secrets')),
                ('request_id', models.CharField(blank=True, max_length=64)),
            ],
            options={
                'verbose_name_plural': 'audit entries',
                'ordering': ('-id',),
                'indexes': [models.Index(fields=['owner_id', '-id'], name='core_audite_owner_i_1f6a11_idx'), models.Index(fields=['subject', 'subject_id'], name='core_audite_subject_ee79b4_idx')],
            },
        ),
        migrations.CreateModel(
            name='IdempotentResponse',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('key', models.CharField(max_length=200)),
                ('request_hash', models.CharField(max_length=64)),
                ('status', models.PositiveSmallIntegerField(null=True)),
                ('body', models.JSONField(null=True)),
                ('subject_id', models.UUIDField(db_index=True, help_text='what the request made, and the answer shows', null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('user', 'key'), name='idempotent_response_once_per_key')],
            },
        ),
        migrations.RunPython(protect, unprotect),
    ]
