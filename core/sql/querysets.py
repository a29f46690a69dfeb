"""The ownership rule: pages, REST and MCP reach rows only through these querysets."""

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, ClassVar, Generic, Self, TypeVar, Union
from uuid import UUID

from django.contrib.auth import get_user_model
from django.core.exceptions import ObjectDoesNotExist
from django.db import models
from django.db.models import Q

from core.errors import NotFound
from core.security.scopes import Principal
from core.sql.compiled_queries import CompiledQuery, uuid_param

if TYPE_CHECKING:
    from django.contrib.auth.models import _User as User

M = TypeVar("M", bound=models.Model, covariant=True)
MAX_SEARCH_WORDS, MAX_SEARCH_CHARS = 10, 1_000


def is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def search_filter(query: str, *fields: str) -> Q:
    """Matches rows with every word of `query` in one of the fields, ignoring case.

    Ten words of the first thousand characters: SQLite refuses longer patterns, and more of them.
    """
    found = Q()
    for word in query[:MAX_SEARCH_CHARS].replace("\0", "").split()[:MAX_SEARCH_WORDS]:
        anywhere = (Q(**{f"{field}__icontains": word}) for field in fields)
        found &= reduce(or_, anywhere)
    return found


class OwnedQuerySet(models.QuerySet[M]):
    """Rows that belong to one user.

    `owner_path` is the lookup from the row to its user, `playbook_path` the one to its playbook's
    id, if it has one: an API key limited to some playbooks reaches only their rows.
    """

    owner_path: ClassVar[str]
    playbook_path: ClassVar[str | None] = None
    missing_hint: ClassVar[str] = "List yours to find its ID."

    def for_user(self, user: Union["User", Principal]) -> Self:
        """The rows of this user or principal; all others do not exist for them."""
        principal = Principal.of(user)
        return self.filter(self._owned(principal) & self._within_key(principal))

    def _owned(self, principal: Principal) -> Q:
        return Q(**{self.owner_path: principal.user.pk})

    def _within_key(self, principal: Principal) -> Q:
        if principal.playbook_ids is None or self.playbook_path is None:
            return Q()
        return Q(**{f"{self.playbook_path}__in": principal.playbook_ids})

    def fetch(self, pk: UUID | str) -> M:
        """The row with this id. Raises NotFound, with the same text for another user's row."""
        try:
            return self.get(pk=UUID(str(pk)))
        except (ValueError, ObjectDoesNotExist):
            raise self.missing() from None

    def missing(self) -> NotFound:
        """The error for a missing row and for another user's."""
        return NotFound(str(self.model._meta.verbose_name), self.missing_hint)


class CompiledLookup(Generic[M]):
    """`rows(by).fetch(pk)` with SQL compiled once, for calls that every agent makes.

    The SQL is compiled with a Param as the user's id; an API key limited to some playbooks uses
    the queryset, because its list of ids has no fixed length.
    """

    def __init__(self, rows: Callable[[Principal], OwnedQuerySet[M]]) -> None:
        self._rows = rows
        self._query: CompiledQuery[M] = CompiledQuery(self._build)

    def _build(self) -> OwnedQuerySet[M]:
        anybody = Principal(get_user_model()(**{"pk": uuid_param("user")}), frozenset())
        return self._rows(anybody).filter(pk=uuid_param("row"))

    def fetch(self, by: Principal, pk: UUID | str) -> M:
        """The row with this id. Raises NotFound, with the same text for another user's row."""
        if by.playbook_ids is not None:
            return self._rows(by).fetch(pk)
        try:
            found = self._query.first(user=by.user.pk, row=UUID(str(pk)))
        except ValueError:
            found = None
        if found is None:
            raise self._rows(by).missing()
        return found
