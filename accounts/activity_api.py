"""What was done to a person's account, at the REST door."""

from collections.abc import Collection
from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.doings import WHAT, WHO, chosen, doings_of
from accounts.errors import Invalid
from accounts.models import AuditEntry
from accounts.rest import Door
from accounts.scopes import Scope

ABOUT, BY = [value for value in WHAT if value], [value for value in WHO if value]
BY_SHOWN = [*BY, "platform"]


class DoingShape(serializers.Serializer[Any]):
    """One change to the account or to something of it."""

    at = serializers.DateTimeField()
    action = serializers.CharField(help_text="The service's verb; stable, for programs.")
    said = serializers.CharField(help_text="The same in words for people.")
    by = serializers.ChoiceField(choices=BY_SHOWN, help_text="`key`: one of your API keys.")
    key = serializers.CharField(help_text="How that key begins; else empty.")
    subject = serializers.CharField(help_text="The kind of row, such as playbook.")
    subject_id = serializers.CharField()
    about = serializers.CharField(help_text="The name that a playbook or a key has now, or empty.")
    detail = serializers.CharField(help_text="Figures of the change, in words; never texts.")


class ActivityDoor(Door):
    """GET /activity."""

    scopes: ClassVar = {"GET": Scope.ACCOUNT}
    ordering: ClassVar = ("-id",)

    @extend_schema(
        operation_id="list_activity",
        parameters=[
            OpenApiParameter("what", enum=ABOUT, description="Only changes to these."),
            OpenApiParameter("who", enum=BY, description="Only changes by these."),
        ],
        responses=DoingShape(many=True),
    )
    def get(self, request: Request) -> Response:
        """Every change to your account, your keys and your playbooks, newest first."""
        what, who = self._one_of("what", WHAT), self._one_of("who", WHO)
        rows = chosen(AuditEntry.objects.for_user(self.who), what, who)
        page: Any = self.paginate_queryset(rows)
        shown = DoingShape(doings_of(list(page), self.who.user), many=True)
        return self.get_paginated_response(shown.data)

    def _one_of(self, name: str, known: Collection[str]) -> str:
        text = self.request.query_params.get(name, "")
        if text not in known:
            raise Invalid.field(name, f"Send one of: {', '.join(filter(None, known))}.")
        return text
