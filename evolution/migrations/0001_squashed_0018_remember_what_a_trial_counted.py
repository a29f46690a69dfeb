"""The tables as of November 2026, at once: a new installation starts in half the time."""

import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
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


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('evolution', '0001_initial'),
        ('evolution', '0002_circuit_of_user_key'),
        ('evolution', '0003_add_trial_evidence'),
        ('evolution', '0004_record_worker_of_job'),
        ('evolution', '0005_add_training_trigger'),
        ('evolution', '0006_add_cost_of_task'),
        ('evolution', '0007_add_outcome_app'),
        ('evolution', '0008_add_incidents'),
        ('evolution', '0009_add_outcome_reference'),
        ('evolution', '0010_add_outcome_tallies'),
        ('evolution', '0011_keep_texts_until'),
        ('evolution', '0012_add_waiting_person'),
        ('evolution', '0013_add_cases'),
        ('evolution', '0014_remove_chat_slots'),
        ('evolution', '0015_add_share_links'),
        ('evolution', '0016_record_corrections'),
        ('evolution', '0017_add_webhook_incidents'),
        ('evolution', '0018_remember_what_a_trial_counted'),
    ]

    dependencies = [
        ('accounts', '0003_add_webhooks'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ('billing', '0001_squashed_0007_keep_notices_in_quota_periods'),
        ('playbooks', '0001_squashed_0009_index_versions_by_reason'),
    ]

    operations = [
        migrations.CreateModel(
            name='ProviderCircuit',
            fields=[
                ('key', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('label', models.CharField(blank=True, help_text='the address, and the model', max_length=200)),
                ('pause', models.FloatField(default=0, help_text='seconds; 0: calls pass')),
                ('open_until', models.DateTimeField(null=True)),
                ('probe_until', models.DateTimeField(null=True)),
                ('counted_from', models.DateTimeField(null=True)),
                ('code', models.CharField(blank=True, help_text='why no call passes', max_length=40)),
                ('is_user_key', models.BooleanField(db_default=False, default=False, help_text="not the operator's key")),
                ('person_waits_until', models.DateTimeField(help_text='until then evolutions leave the next free slot to a chat', null=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.CreateModel(
            name='WorkerHeartbeat',
            fields=[
                ('worker', models.CharField(max_length=64, primary_key=True, serialize=False)),
                ('last_seen_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='Incident',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('provider_down', 'Provider Down'), ('queue_old', 'Queue Old'), ('jobs_stuck', 'Jobs Stuck'), ('evolutions_failed', 'Evolutions Failed'), ('version_taken_back', 'Version Reverted'), ('spend_jumped', 'Spend Jumped'), ('webhooks_failed', 'Webhooks Failed')], max_length=30)),
                ('key', models.CharField(help_text='which one of its kind', max_length=100)),
                ('text', models.CharField(max_length=300)),
                ('opened_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('last_seen_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('closed_at', models.DateTimeField(null=True)),
                ('mailed_at', models.DateTimeField(null=True)),
            ],
            options={
                'ordering': ('-opened_at',),
                'indexes': [models.Index(fields=['-opened_at'], name='incident_opened')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('closed_at', None)), fields=('kind', 'key'), name='one_open_incident')],
            },
        ),
        migrations.CreateModel(
            name='OutcomeCounts',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('reported', models.PositiveIntegerField(default=0)),
                ('succeeded', models.PositiveIntegerField(default=0)),
                ('playbook', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='outcome_counts', to='playbooks.playbook')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('succeeded__lte', models.F('reported'))), name='outcome_counts_succeeded_within_reported')],
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
        migrations.CreateModel(
            name='ShareLink',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('kind', models.CharField(choices=[('diff', 'Version diff'), ('evidence', 'Evidence')], max_length=8)),
                ('version', models.PositiveIntegerField(help_text='of a diff', null=True)),
                ('against', models.PositiveIntegerField(help_text='the version it is compared with', null=True)),
                ('digest', models.CharField(editable=False, help_text='of the token', max_length=64, unique=True)),
                ('expires_at', models.DateTimeField()),
                ('playbook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='share_links', to='playbooks.playbook')),
            ],
            options={
                'ordering': ('-created_at', '-id'),
            },
        ),
        migrations.CreateModel(
            name='TrainingRun',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('kind', models.CharField(choices=[('offline', 'Offline'), ('online', 'Online')], max_length=7)),
                ('status', models.CharField(choices=[('running', 'Running'), ('stopped', 'Stopped'), ('completed', 'Completed'), ('abandoned', 'Abandoned')], default='running', max_length=9)),
                ('config', models.JSONField(default=dict, help_text='options, models, prompts, data sets')),
                ('fence', models.PositiveIntegerField(default=1)),
                ('stop_reason', models.CharField(blank=True, max_length=500)),
                ('summary', models.JSONField(default=dict)),
                ('completed_at', models.DateTimeField(null=True)),
                ('from_version', models.ForeignKey(on_delete=django.db.models.deletion.RESTRICT, related_name='+', to='playbooks.version')),
                ('playbook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='training_runs', to='playbooks.playbook')),
                ('started_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('to_version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='+', to='playbooks.version')),
            ],
            options={
                'verbose_name': 'training run',
                'ordering': ('-created_at',),
            },
        ),
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
            name='EvolutionJob',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('completed', 'Completed'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=10)),
                ('trigger', models.CharField(choices=[('threshold', 'Threshold'), ('time', 'Time'), ('manual', 'Manual'), ('training', 'Training')], max_length=10)),
                ('phase', models.CharField(choices=[('bind', 'Bind'), ('reflect', 'Reflect'), ('curate', 'Curate'), ('publish', 'Publish')], default='bind', max_length=10)),
                ('outcomes_processed', models.PositiveIntegerField(default=0)),
                ('attempt', models.PositiveIntegerField(default=0, help_text='our errors, at most 5')),
                ('rescues', models.PositiveIntegerField(default=0, help_text='worker deaths, at most 3')),
                ('fence', models.PositiveIntegerField(default=0)),
                ('lease_expires_at', models.DateTimeField(null=True)),
                ('worker', models.CharField(blank=True, db_default='', default='', help_text='the process that claimed it', max_length=64)),
                ('heartbeat_at', models.DateTimeField(null=True)),
                ('quota_period_id', models.UUIDField(editable=False, help_text='the plan month that reserves it while it runs', null=True)),
                ('next_attempt_at', models.DateTimeField(null=True)),
                ('deadline_at', models.DateTimeField(null=True)),
                ('notified_at', models.DateTimeField(help_text='when a worker was last notified', null=True)),
                ('cancel_requested_at', models.DateTimeField(null=True)),
                ('skipped_outcomes', models.JSONField(default=dict, help_text='why outcomes gave no reflection, by outcome id')),
                ('wait_reason', models.CharField(blank=True, max_length=300)),
                ('wait_code', models.CharField(blank=True, max_length=40)),
                ('wait_key', models.CharField(blank=True, help_text='the credential whose change ends the wait', max_length=64)),
                ('wait_usd', models.DecimalField(decimal_places=6, max_digits=12, null=True)),
                ('wait_count', models.PositiveIntegerField(default=0, help_text='in a row; each makes the next longer')),
                ('error_code', models.CharField(blank=True, max_length=40)),
                ('error_message', models.CharField(blank=True, max_length=500)),
                ('token_totals', models.JSONField(default=dict)),
                ('engine', models.CharField(blank=True, max_length=20)),
                ('prompt_versions', models.JSONField(default=dict)),
                ('ace_core_version', models.CharField(blank=True, max_length=20)),
                ('outcome_set_hash', models.CharField(blank=True, max_length=64)),
                ('config_hash', models.CharField(blank=True, max_length=64)),
                ('curation', models.JSONField(help_text="the Curator's stored answer", null=True)),
                ('curation_key', models.CharField(blank=True, max_length=64)),
                ('correlation_id', models.CharField(blank=True, help_text='id of the request that triggered it', max_length=64)),
                ('started_at', models.DateTimeField(null=True)),
                ('completed_at', models.DateTimeField(null=True)),
                ('from_version', models.ForeignKey(null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='+', to='playbooks.version')),
                ('playbook', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='jobs', to='playbooks.playbook')),
                ('to_version', models.OneToOneField(null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='job', to='playbooks.version')),
                ('triggered_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('triggered_by_key', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='accounts.apikey')),
                ('training', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='jobs', to='evolution.trainingrun')),
            ],
            options={
                'verbose_name': 'evolution',
                'ordering': ('-created_at',),
                'indexes': [models.Index(fields=['status', 'next_attempt_at'], name='evolution_e_status_d5e245_idx'), models.Index(fields=['playbook', '-created_at', '-id'], name='evolution_e_playboo_c4e10d_idx'), models.Index(condition=models.Q(('completed_at__isnull', False)), fields=['playbook', '-completed_at'], name='job_ended')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('status__in', ('queued', 'running'))), fields=('playbook',), name='one_active_job_per_playbook')],
            },
        ),
        migrations.CreateModel(
            name='TrainingStep',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('key', models.CharField(max_length=120)),
                ('value', models.JSONField()),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='steps', to='evolution.trainingrun')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('run', 'key'), name='training_step_unique')],
            },
        ),
        migrations.CreateModel(
            name='Outcome',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('client', models.CharField(blank=True, help_text='client name, as sent', max_length=100)),
                ('task_description', models.TextField()),
                ('status', models.CharField(choices=[('success', 'Success'), ('failure', 'Failure'), ('partial', 'Partial')], max_length=7)),
                ('reasoning_trace', models.TextField(blank=True)),
                ('notes', models.TextField(blank=True)),
                ('version_assumed', models.BooleanField(default=False)),
                ('cited_bullets', models.JSONField(default=list, help_text='public ids known to the playbook')),
                ('signal', models.CharField(choices=[('ground_truth', 'Ground Truth'), ('test', 'Test'), ('human', 'Human'), ('self_report', 'Self Report')], default='self_report', max_length=12)),
                ('ref', models.CharField(blank=True, db_default='', help_text='commit, pull request or run', max_length=200)),
                ('corrected_at', models.DateTimeField(help_text='when ground truth changed its status', null=True)),
                ('idempotency_key', models.CharField(blank=True, max_length=200)),
                ('request_hash', models.CharField(blank=True, max_length=64)),
                ('reflection_data', models.JSONField(blank=True, default=dict)),
                ('processed_at', models.DateTimeField(null=True)),
                ('keep_until', models.DateTimeField(help_text="its texts, by the plan at that time; empty: by the server's setting", null=True)),
                ('set_aside_reason', models.CharField(blank=True, max_length=300)),
                ('failures', models.PositiveSmallIntegerField(default=0, help_text='of its own reflection')),
                ('cost_usd', models.DecimalField(decimal_places=6, help_text='of the task, as reported', max_digits=12, null=True)),
                ('trial_position', models.PositiveIntegerField(help_text='in the trial, from 1', null=True)),
                ('trial_success', models.BooleanField(help_text='as the trial has counted it', null=True)),
                ('arm', models.CharField(blank=True, choices=[('stable', 'Stable'), ('newest', 'Newest')], db_default='', help_text='of the trial, as read', max_length=6)),
                ('unit', models.CharField(blank=True, db_default='', help_text='its reading', max_length=24)),
                ('api_key', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='accounts.apikey')),
                ('app', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='accounts.connectedapp')),
                ('job', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='outcomes', to='evolution.evolutionjob')),
                ('playbook', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='outcomes', to='playbooks.playbook')),
                ('reported_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('trial', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='outcomes', to='playbooks.trial')),
                ('version', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.RESTRICT, related_name='outcomes', to='playbooks.version')),
            ],
            options={
                'ordering': ('-created_at',),
                'indexes': [models.Index(fields=['-created_at', '-id'], name='evolution_o_created_d45b65_idx'), models.Index(fields=['playbook', '-created_at', '-id'], name='evolution_o_playboo_ad75cb_idx'), models.Index(fields=['playbook', 'status', '-created_at', '-id'], name='evolution_o_playboo_d05d13_idx'), models.Index(fields=['playbook', 'signal', '-created_at', '-id'], name='evolution_o_playboo_3a0ff0_idx'), models.Index(fields=['playbook', 'client', '-created_at', '-id'], name='evolution_o_playboo_9fa9f9_idx'), models.Index(fields=['version', '-created_at', '-id'], name='evolution_o_version_065eac_idx'), models.Index(fields=['playbook', 'api_key', 'app', 'reported_by', '-created_at'], name='evolution_o_playboo_7e1275_idx'), models.Index(condition=models.Q(('ref', ''), _negated=True), fields=['ref'], name='outcome_ref'), models.Index(condition=models.Q(('processed_at', None)), fields=['playbook', '-created_at', '-id'], name='outcome_unprocessed'), models.Index(condition=models.Q(('set_aside_reason', ''), _negated=True), fields=['playbook', '-created_at', '-id'], name='outcome_set_aside'), models.Index(condition=models.Q(('job', None), ('processed_at', None)), fields=['playbook', 'set_aside_reason', 'created_at'], name='outcome_pending')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('idempotency_key', ''), _negated=True), fields=('playbook', 'idempotency_key'), name='outcome_once_per_idempotency_key'), models.UniqueConstraint(condition=models.Q(('trial__isnull', False)), fields=('trial', 'unit'), name='unit_counts_once')],
            },
        ),
        migrations.CreateModel(
            name='Correction',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('source', models.CharField(help_text='key:, app: or user: and id', max_length=60)),
                ('source_name', models.CharField(blank=True, max_length=100)),
                ('status', models.CharField(choices=[('success', 'Success'), ('failure', 'Failure'), ('partial', 'Partial')], max_length=7)),
                ('notes', models.TextField(blank=True)),
                ('reported_status', models.CharField(choices=[('success', 'Success'), ('failure', 'Failure'), ('partial', 'Partial')], max_length=7)),
                ('reported_signal', models.CharField(choices=[('ground_truth', 'Ground Truth'), ('test', 'Test'), ('human', 'Human'), ('self_report', 'Self Report')], max_length=12)),
                ('reported_notes', models.TextField(blank=True)),
                ('playbook', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='playbooks.playbook')),
                ('outcome', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='corrections', to='evolution.outcome')),
            ],
            options={
                'ordering': ('updated_at',),
                'indexes': [models.Index(fields=['playbook', 'source', 'updated_at'], name='evolution_c_playboo_6bfea3_idx')],
                'constraints': [models.UniqueConstraint(fields=('outcome', 'source'), name='one_correction_a_source')],
            },
        ),
        migrations.CreateModel(
            name='Case',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('question', models.TextField()),
                ('context', models.TextField(blank=True)),
                ('target', models.TextField(help_text='the right answer')),
                ('match', models.CharField(choices=[('answer', 'Answer'), ('exact', 'Exact'), ('number', 'Number'), ('list', 'List')], max_length=6)),
                ('must_pass', models.BooleanField(default=False, help_text='failing it twice refuses a version')),
                ('digest', models.CharField(editable=False, help_text='of question and context', max_length=64)),
                ('playbook', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='cases', to='playbooks.playbook')),
                ('outcome', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='evolution.outcome')),
            ],
            options={
                'ordering': ('created_at', 'id'),
                'constraints': [models.UniqueConstraint(fields=('playbook', 'digest'), name='case_question_once')],
            },
        ),
        migrations.CreateModel(
            name='AgentSession',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('serving_id', models.CharField(blank=True, help_text='of the version it was opened with', max_length=500)),
                ('client', models.CharField(blank=True, help_text='client name, as sent', max_length=100)),
                ('title', models.CharField(blank=True, max_length=200)),
                ('model', models.CharField(blank=True, max_length=100)),
                ('source', models.CharField(choices=[('api', 'API'), ('playground', 'playground')], default='api', max_length=12)),
                ('ace_enabled', models.BooleanField(default=True, help_text='off: the model did not read the playbook')),
                ('status', models.CharField(choices=[('open', 'Open'), ('closed', 'Closed')], default='open', max_length=6)),
                ('pair_id', models.UUIDField(db_index=True, help_text='shared by two side by side', null=True)),
                ('message_count', models.PositiveIntegerField(default=0, help_text='and the next position')),
                ('content_bytes', models.PositiveIntegerField(default=0)),
                ('closed_at', models.DateTimeField(null=True)),
                ('keep_until', models.DateTimeField(help_text='its texts, by the plan when last written to; empty: by the setting', null=True)),
                ('blanked_at', models.DateTimeField(help_text='when its texts were deleted', null=True)),
                ('api_key', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='accounts.apikey')),
                ('playbook', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='agent_sessions', to='playbooks.playbook')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='agent_sessions', to=settings.AUTH_USER_MODEL)),
                ('version', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='agent_sessions', to='playbooks.version')),
                ('outcome', models.OneToOneField(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='agent_session', to='evolution.outcome')),
            ],
            options={
                'verbose_name': 'session',
                'ordering': ('-created_at',),
                'indexes': [models.Index(fields=['user', '-created_at', '-id'], name='evolution_a_user_id_154ccd_idx'), models.Index(fields=['playbook', '-created_at', '-id'], name='evolution_a_playboo_d2a893_idx')],
            },
        ),
        migrations.CreateModel(
            name='Reflection',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('attempt', models.PositiveIntegerField(default=1)),
                ('content', models.JSONField()),
                ('tokens', models.PositiveIntegerField(default=0)),
                ('job', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reflections', to='evolution.evolutionjob')),
                ('outcome', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reflections', to='evolution.outcome')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('job', 'outcome'), name='reflection_once_per_job_outcome')],
            },
        ),
        migrations.CreateModel(
            name='SessionMessage',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('position', models.PositiveIntegerField()),
                ('role', models.CharField(choices=[('system', 'System'), ('user', 'User'), ('assistant', 'Assistant'), ('tool', 'Tool'), ('generator', 'Generator'), ('reflector', 'Reflector'), ('curator', 'Curator')], max_length=9)),
                ('content', models.TextField(blank=True)),
                ('tool_calls', models.JSONField(blank=True, default=list, help_text='calls it requests: id, name, arguments as text')),
                ('tool_name', models.CharField(blank=True, help_text='the tool that answered', max_length=100)),
                ('tool_call_id', models.CharField(blank=True, max_length=100)),
                ('cited_bullets', models.JSONField(default=list, help_text='public ids known to the version')),
                ('tokens', models.PositiveIntegerField(default=0)),
                ('session', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='messages', to='evolution.agentsession')),
                ('usage', models.ForeignKey(help_text='the LLM call behind it', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='billing.usagerecord')),
            ],
            options={
                'verbose_name': 'message',
                'ordering': ('position',),
                'constraints': [models.UniqueConstraint(fields=('session', 'position'), name='message_position_once')],
            },
        ),
        migrations.CreateModel(
            name='CaseRun',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('arm', models.CharField(choices=[('stable', 'Stable'), ('newest', 'Newest')], max_length=6)),
                ('round', models.PositiveSmallIntegerField()),
                ('unit', models.CharField(max_length=24)),
                ('claimed_at', models.DateTimeField()),
                ('passed', models.BooleanField(null=True)),
                ('case', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='evolution.case')),
                ('trial', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='case_runs', to='playbooks.trial')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('trial', 'case', 'arm', 'round'), name='case_run_once'), models.UniqueConstraint(fields=('trial', 'unit'), name='case_run_unit_once')],
            },
        ),
        migrations.RunPython(create_triggers, migrations.RunPython.noop),
    ]
