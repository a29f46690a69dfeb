"""The tenancy matrix finds five seeded leaks, each with the test that is for it."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.db.models import Q, QuerySet
from django.http import HttpResponse

from accounts.keys import api_keys
from accounts.models import User
from core.errors import AceError, Forbidden, NotFound
from core.models import IdempotentResponse
from core.rest import idempotency
from core.security.scopes import Principal
from core.sql.querysets import OwnedQuerySet
from tests.api import test_scopes as scopes
from tests.api import test_tenancy as tenancy
from tests.harness.rest_routes import PROTECTED, World, make_world

Patch = pytest.MonkeyPatch


def no_owner(patch: Patch) -> None:
    """Querysets do not filter by owner."""
    patch.setattr(OwnedQuerySet, "_owned", lambda self, principal: Q())


def no_key_limit(patch: Patch) -> None:
    """A key that is limited to some playbooks reaches all."""
    patch.setattr(OwnedQuerySet, "_within_key", lambda self, principal: Q())


def any_playbook(patch: Patch) -> None:
    """The owner of a related row in a body is not checked."""
    patch.setattr(api_keys, "_own_playbooks", lambda user, ids: [str(UUID(str(i))) for i in ids])


def forbidden_instead_of_missing(patch: Patch) -> None:
    """Another owner's row answers 403, which reveals that it exists."""

    def fetch(self: QuerySet[Any], pk: object) -> Any:
        if found := self.filter(pk=pk).first():
            return found
        raise (Forbidden("Not yours.") if self.model._base_manager.filter(pk=pk) else NotFound())

    patch.setattr(OwnedQuerySet, "fetch", fetch)


def no_scope(patch: Patch) -> None:
    """The declared scope of a route is not required."""
    patch.setattr(Principal, "require", lambda self, scope: None)


def shared_responses(patch: Patch) -> None:
    """A stored response is replayed to anybody with the same idempotency key."""
    stored = IdempotentResponse.objects
    real = stored.get_or_create

    def get_or_create(**fields: Any) -> tuple[IdempotentResponse, bool]:
        found = stored.filter(key=fields["key"]).first()
        return (found, False) if found else real(**fields)

    patch.setattr(stored, "get_or_create", get_or_create)
    patch.setattr(idempotency, "_replay", lambda stored, wanted: HttpResponse(stored.body))


def strangers(world: World, alice: User, charlie: User, staff: User) -> None:
    tenancy.test_anybody_else_gets_the_answer_for_a_missing_row(world, charlie, staff, "stranger")


def limited_keys(world: World, alice: User, charlie: User, staff: User) -> None:
    for route in tenancy.UNDER_PLAYBOOK:
        tenancy.test_a_key_limited_to_another_playbook_does_not_reach_this_one(world, alice, route)


def related_rows(world: World, alice: User, charlie: User, staff: User) -> None:
    tenancy.test_a_key_cannot_be_created_for_a_strangers_playbook(world, charlie)


def missing_scopes(world: World, alice: User, charlie: User, staff: User) -> None:
    for route in PROTECTED:
        scopes.test_a_key_with_every_other_scope_is_refused(world, alice, route)


def replayed_answers(world: World, alice: User, charlie: User, staff: User) -> None:
    tenancy.test_an_idempotency_key_of_a_stranger_replays_nothing(world, charlie)


Plant = Callable[[Patch], None]
Look = Callable[[World, User, User, User], None]
LEAKS: list[tuple[Plant, Look]] = [
    (no_owner, strangers),
    (forbidden_instead_of_missing, strangers),
    (no_key_limit, limited_keys),
    (any_playbook, related_rows),
    (no_scope, missing_scopes),
    (shared_responses, replayed_answers),
]


@pytest.mark.parametrize(("plant", "look"), LEAKS, ids=lambda part: part.__name__)
def test_a_seeded_leak_is_found(
    alice: User, charlie: User, staff: User, monkeypatch: Patch, plant: Plant, look: Look
) -> None:
    world = make_world(alice)
    plant(monkeypatch)
    with pytest.raises((AssertionError, AceError, KeyError)):
        look(world, alice, charlie, staff)
