import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '0001_initial'),
        ('billing', '0001_initial'),
        ('playbooks', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
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
            name='ChatSlot',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('expires_at', models.DateTimeField()),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='EvolutionJob',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('status', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('completed', 'Completed'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=10)),
                ('trigger', models.CharField(choices=[('threshold', 'Threshold'), ('time', 'Time'), ('manual', 'Manual')], max_length=10)),
                ('phase', models.CharField(choices=[('bind', 'Bind'), ('reflect', 'Reflect'), ('curate', 'Curate'), ('publish', 'Publish')], default='bind', max_length=10)),
                ('outcomes_processed', models.PositiveIntegerField(default=0)),
                ('attempt', models.PositiveIntegerField(default=0, help_text='our errors, at most 5')),
                ('rescues', models.PositiveIntegerField(default=0, help_text='worker deaths, at most 3')),
                ('fence', models.PositiveIntegerField(default=0)),
                ('lease_expires_at', models.DateTimeField(null=True)),
                ('heartbeat_at', models.DateTimeField(null=True)),
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
            ],
            options={
                'verbose_name': 'evolution',
                'ordering': ('-created_at',),
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
                ('idempotency_key', models.CharField(blank=True, max_length=200)),
                ('request_hash', models.CharField(blank=True, max_length=64)),
                ('reflection_data', models.JSONField(blank=True, default=dict)),
                ('processed_at', models.DateTimeField(null=True)),
                ('set_aside_reason', models.CharField(blank=True, max_length=300)),
                ('failures', models.PositiveSmallIntegerField(default=0, help_text='of its own reflection')),
                ('api_key', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='accounts.apikey')),
                ('job', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='outcomes', to='evolution.evolutionjob')),
                ('playbook', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='outcomes', to='playbooks.playbook')),
                ('reported_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('version', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.RESTRICT, related_name='outcomes', to='playbooks.version')),
            ],
            options={
                'ordering': ('-created_at',),
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
                ('source', models.CharField(choices=[('api', 'Api'), ('playground', 'Playground'), ('orchestrator', 'Orchestrator')], default='api', max_length=12)),
                ('ace_enabled', models.BooleanField(default=True, help_text='off: the model did not read the playbook')),
                ('status', models.CharField(choices=[('open', 'Open'), ('closed', 'Closed')], default='open', max_length=6)),
                ('pair_id', models.UUIDField(db_index=True, help_text='shared by two side by side', null=True)),
                ('message_count', models.PositiveIntegerField(default=0, help_text='and the next position')),
                ('content_bytes', models.PositiveIntegerField(default=0)),
                ('closed_at', models.DateTimeField(null=True)),
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
        migrations.AddField(
            model_name='evolutionjob',
            name='training',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='jobs', to='evolution.trainingrun'),
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
        ),
        migrations.AddIndex(
            model_name='outcome',
            index=models.Index(fields=['-created_at', '-id'], name='evolution_o_created_d45b65_idx'),
        ),
        migrations.AddIndex(
            model_name='outcome',
            index=models.Index(fields=['playbook', '-created_at', '-id'], name='evolution_o_playboo_ad75cb_idx'),
        ),
        migrations.AddIndex(
            model_name='outcome',
            index=models.Index(fields=['playbook', 'status', '-created_at', '-id'], name='evolution_o_playboo_d05d13_idx'),
        ),
        migrations.AddIndex(
            model_name='outcome',
            index=models.Index(fields=['playbook', 'signal', '-created_at', '-id'], name='evolution_o_playboo_3a0ff0_idx'),
        ),
        migrations.AddIndex(
            model_name='outcome',
            index=models.Index(fields=['playbook', 'client', '-created_at', '-id'], name='evolution_o_playboo_9fa9f9_idx'),
        ),
        migrations.AddIndex(
            model_name='outcome',
            index=models.Index(fields=['version', '-created_at', '-id'], name='evolution_o_version_065eac_idx'),
        ),
        migrations.AddIndex(
            model_name='outcome',
            index=models.Index(fields=['playbook', 'api_key', 'reported_by', '-created_at'], name='evolution_o_playboo_80bd52_idx'),
        ),
        migrations.AddIndex(
            model_name='outcome',
            index=models.Index(condition=models.Q(('processed_at', None)), fields=['playbook', '-created_at', '-id'], name='outcome_unprocessed'),
        ),
        migrations.AddIndex(
            model_name='outcome',
            index=models.Index(condition=models.Q(('set_aside_reason', ''), _negated=True), fields=['playbook', '-created_at', '-id'], name='outcome_set_aside'),
        ),
        migrations.AddIndex(
            model_name='outcome',
            index=models.Index(condition=models.Q(('job', None), ('processed_at', None)), fields=['playbook', 'set_aside_reason', 'created_at'], name='outcome_pending'),
        ),
        migrations.AddConstraint(
            model_name='outcome',
            constraint=models.UniqueConstraint(condition=models.Q(('idempotency_key', ''), _negated=True), fields=('playbook', 'idempotency_key'), name='outcome_once_per_idempotency_key'),
        ),
        migrations.AddIndex(
            model_name='agentsession',
            index=models.Index(fields=['user', '-created_at', '-id'], name='evolution_a_user_id_154ccd_idx'),
        ),
        migrations.AddIndex(
            model_name='agentsession',
            index=models.Index(fields=['playbook', '-created_at', '-id'], name='evolution_a_playboo_d2a893_idx'),
        ),
        migrations.AddConstraint(
            model_name='outcomecounts',
            constraint=models.CheckConstraint(condition=models.Q(('succeeded__lte', models.F('reported'))), name='outcome_counts_succeeded_within_reported'),
        ),
        migrations.AddConstraint(
            model_name='reflection',
            constraint=models.UniqueConstraint(fields=('job', 'outcome'), name='reflection_once_per_job_outcome'),
        ),
        migrations.AddConstraint(
            model_name='sessionmessage',
            constraint=models.UniqueConstraint(fields=('session', 'position'), name='message_position_once'),
        ),
        migrations.AddIndex(
            model_name='evolutionjob',
            index=models.Index(fields=['status', 'next_attempt_at'], name='evolution_e_status_d5e245_idx'),
        ),
        migrations.AddIndex(
            model_name='evolutionjob',
            index=models.Index(fields=['playbook', '-created_at', '-id'], name='evolution_e_playboo_c4e10d_idx'),
        ),
        migrations.AddIndex(
            model_name='evolutionjob',
            index=models.Index(condition=models.Q(('completed_at__isnull', False)), fields=['playbook', '-completed_at'], name='job_ended'),
        ),
        migrations.AddConstraint(
            model_name='evolutionjob',
            constraint=models.UniqueConstraint(condition=models.Q(('status__in', ('queued', 'running'))), fields=('playbook',), name='one_active_job_per_playbook'),
        ),
        migrations.AddConstraint(
            model_name='trainingstep',
            constraint=models.UniqueConstraint(fields=('run', 'key'), name='training_step_unique'),
        ),
    ]
