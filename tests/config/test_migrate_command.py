"""Migrations may take longer than a request's statements, and build few models."""

from collections.abc import Iterator
from itertools import groupby
from unittest.mock import patch

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations import AddField, CreateModel
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.migrations.state import ModelState, StateApps
from django.db.models import (
    CASCADE,
    AutoField,
    CharField,
    Field,
    ForeignKey,
    ManyToManyField,
    Model,
    TextField,
)

from config.management.commands.migrate import TIMEOUTS, ForwardState, refuse_old_history


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("command", ["migrate", "bootstrap"])
def test_a_release_runs_without_the_time_outs_of_requests(command: str) -> None:
    call_command(command, verbosity=0)
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        for name in TIMEOUTS:
            cursor.execute(f"SHOW {name}")
            assert cursor.fetchone() == ("0",)
    connection.close()


@pytest.mark.django_db
def test_a_database_older_than_the_squashed_migrations_is_refused_and_left_alone() -> None:
    (squashed,) = (
        migration
        for (app, _), migration in MigrationLoader(None).disk_migrations.items()
        if app == "evolution" and migration.replaces
    )
    history = MigrationRecorder.Migration.objects.filter(app="evolution")
    history.all().delete()
    for _, name in squashed.replaces[:11]:
        history.create(app="evolution", name=name)
    with pytest.raises(CommandError, match=r"it has 11 of 18 migrations of evolution. Check out"):
        call_command("migrate", verbosity=0)
    assert history.count() == 11
    for _, name in squashed.replaces[11:]:
        history.create(app="evolution", name=name)
    refuse_old_history(connection)


def relations(model: type[Model]) -> Iterator[tuple[str, str, type[Model]]]:
    """Field, role and model of each relation from it and to it."""
    for field in model._meta.get_fields(include_hidden=True):
        if field.related_model:
            yield field.name, "model", field.related_model
        if through := getattr(getattr(field, "remote_field", None), "through", None):
            yield field.name, "through", through


def shape(apps: StateApps) -> dict[str, tuple[list[str], list[tuple[str, ...]]]]:
    """Columns and relations of each model, all of which lead to models that are registered."""
    found = {}
    for model in apps.get_models(include_auto_created=True):
        columns = [f"{one.column} {one.deconstruct()[1:]}" for one in model._meta.local_fields]
        related = sorted((*one, other._meta.label) for *one, other in relations(model))
        for _, _, other in relations(model):
            assert apps.get_model(other._meta.label) is other
        found[model._meta.label] = columns, related
    return found


def test_migrations_see_the_models_that_django_builds_from_nothing_and_few_are_built() -> None:
    loader = MigrationLoader(None)
    leaves = loader.graph.leaf_nodes()
    plan = dict.fromkeys(key for leaf in leaves for key in loader.graph.forwards_plan(leaf))
    state = ForwardState(real_apps=loader.unmigrated_apps)
    assert not shape(state.apps)
    built, fresh = 0, {}
    for _, keys in groupby(plan, key=lambda key: key[0]):
        with patch.object(ModelState, "render", autospec=True, side_effect=ModelState.render) as it:
            for key in keys:
                loader.graph.nodes[key].mutate_state(state, preserve=False)
        built += it.call_count
        fresh = shape(StateApps(list(loader.unmigrated_apps), state.models))
        assert shape(state.apps) == fresh
    assert len(fresh) < built < 10 * len(fresh)  # Django's own: 60 for each model


def model(name: str, *fields: tuple[str, "Field[object, object]"]) -> CreateModel:
    return CreateModel(name, [("id", AutoField(primary_key=True)), *fields])


def test_a_changed_model_is_changed_for_those_that_relate_through_it_too() -> None:
    state = ForwardState()
    assert not shape(state.apps)
    for step in (
        model("Person"),
        model("Group"),
        model(
            "Membership",
            ("person", ForeignKey("app.Person", CASCADE)),
            ("group", ForeignKey("app.Group", CASCADE)),
        ),
        AddField("Group", "members", ManyToManyField("app.Person", through="app.Membership")),
        AddField("Person", "name", CharField(max_length=9, default="")),
        AddField("Membership", "note", TextField(default="")),
    ):
        step.state_forwards("app", state)
    assert shape(state.apps) == shape(StateApps([], state.models))


@pytest.mark.django_db
def test_migrate_goes_forwards_with_such_models() -> None:
    MigrationRecorder.Migration.objects.filter(app="sessions").delete()
    used = "config.management.commands.migrate.ForwardState"
    with patch(used, wraps=ForwardState) as state:
        call_command("migrate", "sessions", fake=True, verbosity=0)
    assert state.called
