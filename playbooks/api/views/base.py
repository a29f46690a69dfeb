"""What the REST views below one playbook share."""

from typing import ClassVar
from uuid import UUID

from rest_framework.request import Request

from core.errors import Invalid
from core.rest.views import BaseAPIView
from core.security.scopes import Scope
from playbooks.models import Playbook


class BasePlaybookView(BaseAPIView):
    """A route under one playbook."""

    scopes: ClassVar = {"GET": Scope.READ}

    def playbook(self, pk: UUID) -> Playbook:
        """For reading: the caller's own, or a starter."""
        rows = Playbook.objects.for_user(self.principal, include_starters=True)
        return rows.select_related("current_version").fetch(pk)

    def own_playbook(self, pk: UUID) -> Playbook:
        """For changing: the caller's own."""
        return Playbook.objects.for_user(self.principal).select_related("current_version").fetch(pk)


def choice_param(request: Request, name: str, known: tuple[str, ...]) -> str:
    """A query parameter that is one of `known`, by default the first. Raises Invalid."""
    word = str(request.query_params.get(name, known[0])).lower()
    if word not in known:
        raise Invalid.field(name, f"Choose one of: {', '.join(known)}.")
    return word
