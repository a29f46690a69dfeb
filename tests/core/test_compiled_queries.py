"""Compiled queries return what their querysets return, and cache only SQL."""

import uuid
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import CharField

from accounts.keys.authentication import principal_for_key
from accounts.models import ApiKey, User
from core.errors import NotAuthenticated, NotFound
from core.security.scopes import Principal
from core.sql.compiled_queries import CompiledInsert, CompiledQuery, Param, uuid_param
from core.sql.querysets import CompiledLookup
from evolution.jobs.lifecycle import lock_active_playbook
from evolution.models import Outcome
from playbooks.models import Playbook
from tests.factories import make_key, make_playbook

pytestmark = pytest.mark.databases

LOOKUP = CompiledLookup(lambda by: Playbook.objects.for_user(by).select_related("current_version"))


def test_the_owner_gets_the_row_as_the_queryset_gives_it(alice: User) -> None:
    by, known = Principal.of(alice), make_playbook(alice)
    found = LOOKUP.fetch(by, str(known.pk))
    plain = Playbook.objects.for_user(by).select_related("current_version").fetch(known.pk)
    for row, other in ((found, plain), (found.current_version, plain.current_version)):
        assert {k: v for k, v in vars(row).items() if k != "_state"} == {
            k: v for k, v in vars(other).items() if k != "_state"
        }


@pytest.mark.parametrize("pk", ["", "no id", str(uuid.UUID(int=0))])
def test_a_missing_row_raises_the_same_error_as_the_queryset(alice: User, pk: str) -> None:
    by = Principal.of(alice)
    with pytest.raises(NotFound) as compiled:
        LOOKUP.fetch(by, pk)
    with pytest.raises(NotFound) as plain:
        Playbook.objects.for_user(by).fetch(pk)
    assert str(compiled.value) == str(plain.value)


@pytest.mark.parametrize("who", ["charlie", "staff"])
def test_another_user_finds_nothing(alice: User, charlie: User, staff: User, who: str) -> None:
    known = make_playbook(alice)
    assert LOOKUP.fetch(Principal.of(alice), known.pk) == known
    with pytest.raises(NotFound):
        LOOKUP.fetch(Principal.of({"charlie": charlie, "staff": staff}[who]), known.pk)


def test_a_limited_key_reaches_its_playbooks_only(alice: User) -> None:
    mine, other = make_playbook(alice), make_playbook(alice)
    by = principal_for_key(make_key(alice, playbook_ids=[mine.pk])[1])
    assert LOOKUP.fetch(by, mine.pk) == mine
    with pytest.raises(NotFound):
        LOOKUP.fetch(by, other.pk)


def test_rows_of_values_are_tuples(alice: User) -> None:
    names = CompiledQuery[Any](
        lambda: (
            Playbook.objects.filter(owner=uuid_param("owner"))
            .order_by("-name")
            .values_list("name", "pk", "created_at")
        )
    )
    first, second = make_playbook(alice, name="A"), make_playbook(alice, name="B")
    assert names.all(owner=alice.pk) == [
        ("B", second.pk, second.created_at),
        ("A", first.pk, first.created_at),
    ]


def test_a_literal_time_is_refused(alice: User) -> None:
    keys = CompiledQuery(
        lambda: ApiKey.objects.usable().filter(prefix=Param("prefix", CharField()))
    )
    with pytest.raises(AssertionError, match="has to be a Param"):
        keys.first(prefix="x")


def test_a_literal_id_is_refused(alice: User) -> None:
    rows = CompiledQuery(lambda: Playbook.objects.filter(owner=alice))
    with pytest.raises(AssertionError, match="has to be a Param"):
        rows.first()


def test_an_expired_key_is_refused_by_the_compiled_statement(alice: User) -> None:
    key, token = make_key(alice)
    principal_for_key(token)
    ApiKey.objects.filter(pk=key.pk).update(expires_at=datetime(2020, 1, 1, tzinfo=UTC))
    with pytest.raises(NotAuthenticated):
        principal_for_key(token)


@pytest.mark.django_db(transaction=True)
def test_a_lock_outside_a_transaction_is_refused(alice: User) -> None:
    with pytest.raises(AssertionError, match="ends with its transaction"):
        lock_active_playbook(make_playbook(alice))


def test_an_inserted_row_is_the_one_that_save_stores(alice: User) -> None:
    playbook = make_playbook(alice)
    given = {"task_description": "Mend it", "status": "success", "cited_bullets": ["str-00001"]}
    saved, inserted = (
        Outcome(
            playbook=playbook, version=playbook.current_version, cost_usd=Decimal("0.5"), **given
        )
        for _ in range(2)
    )
    saved.save(force_insert=True)
    CompiledInsert().insert(inserted)
    own = {"_state", "id", "created_at", "updated_at"}
    first, second = (
        {name: value for name, value in vars(row).items() if name not in own}
        for row in Outcome.objects.filter(pk__in=[saved.pk, inserted.pk]).order_by("created_at")
    )
    assert first == second
    assert {name: vars(inserted)[name] for name in first} == first
    inserted.save()
    assert Outcome.objects.count() == 2
