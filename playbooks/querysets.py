"""The read side of playbooks; `for_user` comes from accounts/querysets.py."""

from typing import TYPE_CHECKING, Self, Union

from django.db.models import Q

from accounts.querysets import OwnedQuerySet
from accounts.scopes import Principal

if TYPE_CHECKING:
    from accounts.models import User
    from playbooks.models import (  # noqa: F401 - used in quotes
        Bullet,
        Delta,
        Playbook,
        Section,
        Version,
    )


class PlaybookQuerySet(OwnedQuerySet["Playbook"]):
    owner_path = "owner"
    playbook_path = "id"
    missing_hint = "List yours to see their ids; a starter must be cloned first."

    def for_user(self, who: Union["User", Principal], *, include_starters: bool = False) -> Self:
        """The user's playbooks; with `include_starters` also those that everyone may read."""
        principal = Principal.of(who)
        owned = self._owned(principal)
        if include_starters:
            owned |= Q(source="starter", owner=None, status="active")
        return self.filter(owned & self._within_key(principal))

    def starters(self) -> Self:
        return self.filter(source="starter", owner=None)

    def active(self) -> Self:
        return self.filter(status="active")


class VersionQuerySet(OwnedQuerySet["Version"]):
    owner_path = "playbook__owner"
    playbook_path = "playbook_id"


class SectionQuerySet(OwnedQuerySet["Section"]):
    owner_path = "playbook__owner"
    playbook_path = "playbook_id"


class BulletQuerySet(OwnedQuerySet["Bullet"]):
    owner_path = "playbook__owner"
    playbook_path = "playbook_id"

    def active(self) -> Self:
        return self.filter(status="active")


class DeltaQuerySet(OwnedQuerySet["Delta"]):
    owner_path = "playbook__owner"
    playbook_path = "playbook_id"

    def applied(self) -> Self:
        return self.filter(status="applied")
