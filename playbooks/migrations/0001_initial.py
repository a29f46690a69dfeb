import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Playbook',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('name', models.CharField(max_length=120)),
                ('description', models.CharField(blank=True, max_length=1000)),
                ('status', models.CharField(choices=[('active', 'Active'), ('archived', 'Archived')], default='active', max_length=10)),
                ('source', models.CharField(choices=[('starter', 'Starter'), ('user_created', 'User Created'), ('imported', 'Imported')], default='user_created', max_length=12)),
                ('next_bullet_number', models.PositiveIntegerField(default=1)),
                ('refined_to', models.PositiveIntegerField(default=1, help_text='bullets with smaller numbers were compared with each other')),
                ('token_budget', models.PositiveIntegerField(default=16000)),
                ('review_policy', models.CharField(choices=[('risky', 'Risky'), ('all', 'All'), ('none', 'None')], default='risky', help_text='which machine-made texts need review', max_length=5)),
                ('outcome_threshold', models.PositiveIntegerField(blank=True, null=True)),
                ('time_threshold_hours', models.PositiveIntegerField(blank=True, null=True)),
                ('starter_file', models.CharField(blank=True, help_text='file that it follows', max_length=60)),
                ('starter_edited', models.BooleanField(default=False, help_text='by staff: no longer follows its file')),
                ('cloned_from', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='clones', to='playbooks.playbook')),
                ('owner', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='playbooks', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-updated_at',),
            },
        ),
        migrations.CreateModel(
            name='Delta',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('job_id', models.UUIDField(db_index=True, null=True)),
                ('index', models.PositiveIntegerField()),
                ('type', models.CharField(choices=[('ADD', 'Add'), ('UPDATE', 'Update'), ('TAG', 'Tag'), ('REMOVE', 'Remove'), ('MERGE', 'Merge'), ('RESTORE', 'Restore'), ('PIN', 'Pin'), ('UNSUPPORTED', 'Unsupported')], max_length=12)),
                ('bullet_public_id', models.CharField(blank=True, max_length=16)),
                ('before', models.JSONField(null=True)),
                ('after', models.JSONField(null=True)),
                ('reason', models.CharField(blank=True, max_length=1000)),
                ('status', models.CharField(choices=[('applied', 'Applied'), ('rejected', 'Rejected'), ('noop', 'Noop'), ('held', 'Held')], max_length=8)),
                ('reason_code', models.CharField(blank=True, max_length=40)),
                ('outcome_ids', models.JSONField(default=list)),
                ('provenance', models.JSONField(default=dict, help_text='model; sources: who reported')),
                ('author', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('playbook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deltas', to='playbooks.playbook')),
            ],
            options={
                'ordering': ('created_at', 'index'),
            },
        ),
        migrations.CreateModel(
            name='Section',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('key', models.CharField(max_length=60)),
                ('title', models.CharField(max_length=120)),
                ('slug', models.CharField(max_length=8)),
                ('position', models.PositiveSmallIntegerField()),
                ('aliases', models.JSONField(blank=True, default=list)),
                ('playbook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='sections', to='playbooks.playbook')),
            ],
            options={
                'ordering': ('position',),
            },
        ),
        migrations.CreateModel(
            name='Bullet',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('public_id', models.CharField(max_length=16)),
                ('content', models.CharField(max_length=2000)),
                ('content_hash', models.CharField(max_length=64)),
                ('revision', models.PositiveIntegerField(default=1)),
                ('status', models.CharField(choices=[('active', 'Active'), ('retired', 'Retired'), ('merged', 'Merged')], default='active', max_length=8)),
                ('pinned', models.BooleanField(default=False)),
                ('helpful', models.PositiveIntegerField(default=0)),
                ('harmful', models.PositiveIntegerField(default=0)),
                ('neutral', models.PositiveIntegerField(default=0)),
                ('base_helpful', models.PositiveIntegerField(default=0)),
                ('base_harmful', models.PositiveIntegerField(default=0)),
                ('metadata', models.JSONField(blank=True, default=dict, help_text='outcome_ids: its sources')),
                ('merged_into', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='merged_from', to='playbooks.bullet')),
                ('playbook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='bullets', to='playbooks.playbook')),
                ('section', models.ForeignKey(on_delete=django.db.models.deletion.RESTRICT, related_name='bullets', to='playbooks.section')),
            ],
            options={
                'ordering': ('section__position', 'public_id'),
            },
        ),
        migrations.CreateModel(
            name='TextEmbedding',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('model', models.CharField(max_length=100)),
                ('content_hash', models.CharField(max_length=64)),
                ('vector_bytes', models.BinaryField(help_text='its numbers, 32-bit floats')),
                ('playbook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='text_embeddings', to='playbooks.playbook')),
            ],
            options={
                'ordering': ('-created_at',),
            },
        ),
        migrations.CreateModel(
            name='Version',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('number', models.PositiveIntegerField()),
                ('text', models.TextField(help_text='ACE text, counters included')),
                ('text_hash', models.CharField(help_text='SHA-256 of the agent view', max_length=64)),
                ('bullet_count', models.PositiveIntegerField()),
                ('token_count', models.PositiveIntegerField(help_text='estimate for the agent view')),
                ('reason', models.CharField(choices=[('create', 'Create'), ('evolution', 'Evolution'), ('edit', 'Edit'), ('rollback', 'Rollback'), ('import', 'Import'), ('clone', 'Clone')], max_length=10)),
                ('job_id', models.UUIDField(null=True, unique=True)),
                ('diff_summary', models.JSONField(default=dict)),
                ('author', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('parent', models.ForeignKey(null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='children', to='playbooks.version')),
                ('playbook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='versions', to='playbooks.playbook')),
            ],
            options={
                'ordering': ('-number',),
            },
        ),
        migrations.CreateModel(
            name='ReviewItem',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('content_hash', models.CharField(max_length=64)),
                ('state', models.CharField(choices=[('pending', 'Pending'), ('approved', 'Approved'), ('declined', 'Declined')], default='pending', max_length=8)),
                ('decided_at', models.DateTimeField(null=True)),
                ('decided_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('delta', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='review_item', to='playbooks.delta')),
                ('playbook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='review_items', to='playbooks.playbook')),
                ('version', models.ForeignKey(help_text='of approval', null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='+', to='playbooks.version')),
            ],
            options={
                'verbose_name': 'review item',
                'ordering': ('-created_at',),
            },
        ),
        migrations.AddField(
            model_name='playbook',
            name='current_version',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.RESTRICT, related_name='+', to='playbooks.version'),
        ),
        migrations.AddField(
            model_name='delta',
            name='version',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deltas', to='playbooks.version'),
        ),
        migrations.CreateModel(
            name='Vote',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('outcome_id', models.UUIDField(blank=True, db_index=True, null=True)),
                ('source', models.CharField(help_text='reflector, rules, or user:<id>', max_length=80)),
                ('tag', models.CharField(choices=[('helpful', 'Helpful'), ('harmful', 'Harmful'), ('neutral', 'Neutral')], max_length=8)),
                ('bullet', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='votes', to='playbooks.bullet')),
            ],
        ),
        migrations.CreateModel(
            name='DuplicateDecision',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('first', models.CharField(help_text='public id of the older bullet', max_length=16)),
                ('second', models.CharField(max_length=16)),
                ('first_hash', models.CharField(help_text='content hash when it was judged', max_length=64)),
                ('second_hash', models.CharField(max_length=64)),
                ('is_duplicate', models.BooleanField()),
                ('content', models.CharField(blank=True, help_text='text of the merge', max_length=4001)),
                ('reason', models.CharField(blank=True, max_length=1000)),
                ('judge', models.CharField(help_text='rules, or the model', max_length=100)),
                ('job_id', models.UUIDField(null=True)),
                ('playbook', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='duplicate_decisions', to='playbooks.playbook')),
            ],
            options={
                'ordering': ('-created_at',),
                'constraints': [models.UniqueConstraint(fields=('playbook', 'first', 'second', 'first_hash', 'second_hash'), name='duplicate_decided_once')],
            },
        ),
        migrations.AddConstraint(
            model_name='section',
            constraint=models.UniqueConstraint(fields=('playbook', 'key'), name='section_key_once'),
        ),
        migrations.AddConstraint(
            model_name='section',
            constraint=models.UniqueConstraint(fields=('playbook', 'slug'), name='section_slug_once'),
        ),
        migrations.AddIndex(
            model_name='bullet',
            index=models.Index(fields=['section', 'created_at'], name='playbooks_b_section_42f822_idx'),
        ),
        migrations.AddConstraint(
            model_name='bullet',
            constraint=models.UniqueConstraint(fields=('playbook', 'public_id'), name='bullet_id_once'),
        ),
        migrations.AddConstraint(
            model_name='bullet',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'active')), fields=('playbook', 'content_hash'), name='bullet_text_active_once'),
        ),
        migrations.AddConstraint(
            model_name='bullet',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('merged_into__isnull', False), ('status', 'merged')), models.Q(models.Q(('status', 'merged'), _negated=True), ('merged_into', None)), _connector='OR'), name='bullet_merged_has_survivor'),
        ),
        migrations.AddConstraint(
            model_name='bullet',
            constraint=models.CheckConstraint(condition=models.Q(('helpful__gte', models.F('base_helpful')), ('harmful__gte', models.F('base_harmful'))), name='bullet_counters_not_below_base'),
        ),
        migrations.AddConstraint(
            model_name='textembedding',
            constraint=models.UniqueConstraint(fields=('playbook', 'model', 'content_hash'), name='text_embedded_once'),
        ),
        migrations.AddConstraint(
            model_name='version',
            constraint=models.UniqueConstraint(fields=('playbook', 'number'), name='version_number_once'),
        ),
        migrations.AddIndex(
            model_name='reviewitem',
            index=models.Index(fields=['playbook', 'state', '-created_at'], name='playbooks_r_playboo_2c352f_idx'),
        ),
        migrations.AddConstraint(
            model_name='reviewitem',
            constraint=models.UniqueConstraint(condition=models.Q(('state', 'pending')), fields=('playbook', 'content_hash'), name='review_item_pending_once'),
        ),
        migrations.AddIndex(
            model_name='playbook',
            index=models.Index(fields=['owner', 'status', '-updated_at'], name='playbooks_p_owner_i_28ea50_idx'),
        ),
        migrations.AddConstraint(
            model_name='playbook',
            constraint=models.UniqueConstraint(condition=models.Q(('source', 'starter')), fields=('name',), name='starter_name_once'),
        ),
        migrations.AddConstraint(
            model_name='playbook',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('owner', None), ('source', 'starter')), models.Q(models.Q(('source', 'starter'), _negated=True), ('owner__isnull', False)), _connector='OR'), name='playbook_owner_unless_starter'),
        ),
        migrations.AddIndex(
            model_name='delta',
            index=models.Index(fields=['playbook', 'bullet_public_id'], name='playbooks_d_playboo_ea79c6_idx'),
        ),
        migrations.AddConstraint(
            model_name='delta',
            constraint=models.UniqueConstraint(fields=('version', 'index'), name='delta_index_once'),
        ),
        migrations.AddConstraint(
            model_name='vote',
            constraint=models.UniqueConstraint(fields=('bullet', 'outcome_id', 'source'), name='vote_once_per_outcome'),
        ),
        migrations.AddConstraint(
            model_name='vote',
            constraint=models.UniqueConstraint(condition=models.Q(('outcome_id', None)), fields=('bullet', 'source'), name='vote_once_without_outcome'),
        ),
    ]
