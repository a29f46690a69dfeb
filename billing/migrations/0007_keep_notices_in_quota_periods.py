"""Keep in a plan month what its user was told about its limits."""

from django.db import migrations, models


def move_notices(apps, schema_editor):
    periods = apps.get_model("billing", "QuotaPeriod").objects
    for notice in apps.get_model("billing", "QuotaNotice").objects.order_by("percent"):
        period = periods.get(pk=notice.period_id)  # read again: it may have had another notice
        state = "reached" if notice.percent == 100 else "near"
        period.notified = (period.notified or {}) | {notice.resource: f"{state} {notice.limit}"}
        if state == "reached":
            period.waited_for = (period.waited_for or {}) | {notice.resource: notice.limit}
        period.save(update_fields=["notified", "waited_for"])


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0006_number_requests_in_accounts'),
    ]

    operations = [
        migrations.AddField(
            model_name='quotaperiod',
            name='notified',
            field=models.JSONField(editable=False, help_text='last e-mail, by resource', null=True),
        ),
        migrations.AddField(
            model_name='quotaperiod',
            name='waited_for',
            field=models.JSONField(editable=False, help_text='limits, by resource, for which something had to wait', null=True),
        ),
        migrations.RunPython(move_notices, migrations.RunPython.noop),
        migrations.DeleteModel(
            name='QuotaNotice',
        ),
    ]
