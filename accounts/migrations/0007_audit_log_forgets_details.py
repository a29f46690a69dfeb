"""When an account is deleted, its entries of the audit log lose their details as well as the e-mail.

Details may hold names that the person chose. Everything else of an entry stays unchangeable.
"""

from importlib import import_module

from django.db import migrations

before = import_module("accounts.migrations.0004_audit_log_append_only")
TABLE, SAID = before.TABLE, before.SAID
KEPT = [name for name in before.KEPT if name != "detail"]


def changed(unlike: str, empty: str) -> str:
    kept = " OR ".join(f'NEW."{name}" {unlike} OLD."{name}"' for name in KEPT)
    return (
        f"(NEW.actor <> '' AND NEW.actor {unlike} OLD.actor) OR {kept} "
        f"OR (NEW.detail <> {empty} AND NEW.detail {unlike} OLD.detail)"
    )


def conditions(vendor: str, loose: bool) -> str:
    unlike = "IS NOT" if vendor == "sqlite" else "IS DISTINCT FROM"
    if not loose:
        return before.changed(unlike)
    return changed(unlike, "'{}'" if vendor == "sqlite" else "'{}'::jsonb")


def replace(schema_editor, loose: bool) -> None:
    vendor = schema_editor.connection.vendor
    on_table = "" if vendor == "sqlite" else f" ON {TABLE}"
    schema_editor.execute(f"DROP TRIGGER {TABLE}_no_update{on_table}")
    then = (
        f"BEGIN SELECT RAISE(ABORT, '{SAID}'); END"
        if vendor == "sqlite"
        else f"EXECUTE FUNCTION {TABLE}_refuse()"
    )
    each = "" if vendor == "sqlite" else "FOR EACH ROW "
    schema_editor.execute(
        f"CREATE TRIGGER {TABLE}_no_update BEFORE UPDATE ON {TABLE} {each}"
        f"WHEN ({conditions(vendor, loose)}) {then}"
    )


def loosen(apps, schema_editor):
    replace(schema_editor, True)


def tighten(apps, schema_editor):
    replace(schema_editor, False)


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0006_connected_apps"),
    ]

    operations = [migrations.RunPython(loosen, tighten)]
