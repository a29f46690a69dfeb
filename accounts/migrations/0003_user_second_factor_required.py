from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_audit_log'),
    ]

    operations = [
        migrations.AddField(
            model_name='user',
            name='second_factor_required',
            field=models.BooleanField(default=False, help_text='refused everything but setting one up until there is one'),
        ),
    ]
