import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ClientActivity',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('credential', models.CharField(help_text="the key's prefix, or `login`", max_length=40)),
                ('client', models.CharField(blank=True, max_length=100)),
                ('tool', models.CharField(blank=True, help_text='the last tool called', max_length=60)),
                ('accepted_at', models.DateTimeField(null=True)),
                ('refused_at', models.DateTimeField(null=True)),
                ('refusal', models.CharField(blank=True, help_text='the code of the last refusal', max_length=40)),
                ('seen_at', models.DateTimeField()),
                ('api_key', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.apikey')),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='client_activity', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ('-seen_at',),
                'indexes': [models.Index(fields=['user', '-seen_at'], name='mcp_bridge__user_id_bb77fb_idx')],
                'constraints': [models.UniqueConstraint(fields=('user', 'credential', 'client'), name='client_activity_once_per_client')],
            },
        ),
    ]
