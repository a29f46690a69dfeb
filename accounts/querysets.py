"""THE ownership rule: the only way in which a door reaches a row."""

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar, Union
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.db import models
from django.db.models import Q

from accounts.errors import NotFound
from accounts.scopes import Principal

if TYPE_CHECKING:
    from accounts.models import User

M = TypeVar("M", bound=models.Model, covariant=True)
MOST_WORDS = 10


def words_in(query: str, *fields: str) -> Q:
    """Every word of `query`, in any case, in one of the fields; the first ten words count."""
    found = Q()
    for word in query.replace("\0", "").split()[:MOST_WORDS]:
        anywhere = (Q(**{f"{field}__icontains": word}) for field in fields)
        found &= reduce(or_, anywhere)
    return found


class OwnedQuerySet(models.QuerySet[M]):
    """Rows that belong to one user.

    `owner_path` leads from the row to its user. `playbook_path` leads to the playbook's id for
    rows that hang on one, so that a key limited to some playbooks reaches only those.
    """

    owner_path: ClassVar[str]
    playbook_path: ClassVar[str | None] = None
    missing_hint: ClassVar[str] = "List yours to see their ids."

    def for_user(self, who: Union["User", Principal]) -> Self:
        """The rows that `who` may see; everything else does not exist for them."""
        principal = Principal.of(who)
        return self.filter(self._owned(principal) & self._within_key(principal))

    def _owned(self, principal: Principal) -> Q:
        return Q(**{self.owner_path: principal.user.pk})

    def _within_key(self, principal: Principal) -> Q:
        if principal.playbook_ids is None or self.playbook_path is None:
            return Q()
        return Q(**{f"{self.playbook_path}__in": principal.playbook_ids})

    def fetch(self, pk: UUID | str) -> M:
        """The row with this id, or NotFound with the text that a missing row gets too."""
        try:
            return self.get(pk=UUID(str(pk)))
        except (ValueError, ObjectDoesNotExist):
            raise NotFound(str(self.model._meta.verbose_name), self.missing_hint) from None
