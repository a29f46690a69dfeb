"""Connected apps: apart, because oauth2_provider's first migration needs the table of users."""

import uuid

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0001_initial"),
        migrations.swappable_dependency(settings.OAUTH2_PROVIDER_APPLICATION_MODEL),
        # All of it before our tables: each of its 80 altered fields renders again every model that
        # refers to the users, which was 60 % of a first migration.
        ("oauth2_provider", "0022_refreshtoken_token_family_index"),
    ]

    operations = [
        migrations.CreateModel(
            name='ConnectedApp',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('redirect_host', models.CharField(help_text='where the browser was sent back to', max_length=255)),
                ('scopes', models.JSONField(default=list)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ('last_used_at', models.DateTimeField(blank=True, editable=False, null=True)),
                ('application', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='connections', to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='connected_apps', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'connected app',
            },
        ),
        migrations.AddConstraint(
            model_name='connectedapp',
            constraint=models.UniqueConstraint(fields=('user', 'application'), name='one_connection_per_user_and_app'),
        ),
    ]
