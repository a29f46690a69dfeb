from django.db import migrations, models
from django.db.models import OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce, Length


def count_stored_bytes(apps, schema_editor):
    Playbook, Version = apps.get_model("playbooks", "Playbook"), apps.get_model("playbooks", "Version")
    texts = Version.objects.filter(playbook=OuterRef("pk")).order_by().values("playbook")
    size = texts.annotate(size=Sum(Length("text"))).values("size")
    Playbook.objects.update(stored_bytes=Coalesce(Subquery(size), 0))


class Migration(migrations.Migration):
    dependencies = [("playbooks", "0003_record_the_credential_of_edits")]

    operations = [
        migrations.AddField(
            model_name="playbook",
            name="stored_bytes",
            field=models.PositiveBigIntegerField(
                db_default=0, default=0, editable=False, help_text="texts of all versions"
            ),
        ),
        migrations.RunPython(count_stored_bytes, migrations.RunPython.noop),
    ]
