"""What a migration adds to a table that an older version of the code still writes to."""

from django.apps import apps
from django.db.migrations import AddField, CreateModel, Migration
from django.db.migrations.loader import MigrationLoader
from django.db.models import NOT_PROVIDED, Field

OURS = ("accounts", "playbooks", "evolution", "billing", "mcp_bridge")
BEFORE_ANY_UPGRADE = {  # added by migrations that never ran beside an older version
    "accounts.user.pending_email",
    "accounts.user.second_factor_required",
}


def refuses_old_code(app: str, model: str, name: str) -> bool:
    """Whether a row written without this column, as it is today, is refused."""
    if name not in {field.name for field in apps.get_model(app, model)._meta.get_fields()}:
        return False  # removed by a later migration
    field = apps.get_model(app, model)._meta.get_field(name)
    assert isinstance(field, Field)
    return not field.null and field.db_default is NOT_PROVIDED


def added_to_old_tables(migration: Migration) -> list[tuple[str, str, str]]:
    made = {step.name_lower for step in migration.operations if isinstance(step, CreateModel)}
    return [
        (migration.app_label, step.model_name_lower, step.name_lower)
        for step in migration.operations
        if isinstance(step, AddField) and step.model_name_lower not in made
    ]


def test_a_column_added_to_an_old_table_may_be_left_out_by_older_code() -> None:
    migrations = MigrationLoader(None).disk_migrations.values()
    added = [
        field for one in migrations if one.app_label in OURS for field in added_to_old_tables(one)
    ]
    assert {".".join(field) for field in added if refuses_old_code(*field)} <= BEFORE_ANY_UPGRADE
