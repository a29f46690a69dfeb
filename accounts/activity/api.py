"""What was done to a person's account, at the REST door."""

from collections.abc import Collection
from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.activity.entries import (
    ACTOR_FILTERS,
    SUBJECT_FILTERS,
    activity_entries,
    filter_entries,
)
from core.errors import Invalid
from core.models import AuditEntry
from core.rest.views import BaseAPIView
from core.security.scopes import Scope

SUBJECTS, ACTORS = (
    [value for value in SUBJECT_FILTERS if value],
    [value for value in ACTOR_FILTERS if value],
)
ACTOR_CHOICES = [*ACTORS, "platform"]


class ActivityEntrySerializer(serializers.Serializer[Any]):
    """One change to the account or to something of it."""

    at = serializers.DateTimeField()
    action = serializers.CharField(help_text="The service's verb; stable, for programs.")
    summary = serializers.CharField(help_text="The same in words for people.")
    by = serializers.ChoiceField(choices=ACTOR_CHOICES, help_text="`key`: one of your API keys.")
    key = serializers.CharField(help_text="How that key begins; else empty.")
    subject = serializers.CharField(help_text="The kind of row, such as playbook.")
    subject_id = serializers.CharField()
    subject_name = serializers.CharField(
        help_text="The name that a playbook or a key has now, or empty."
    )
    detail = serializers.CharField(help_text="Figures of the change, in words; never texts.")


class ActivityView(BaseAPIView):
    """GET /activity."""

    scopes: ClassVar = {"GET": Scope.ACCOUNT}
    ordering: ClassVar = ("-id",)

    @extend_schema(
        operation_id="list_activity",
        parameters=[
            OpenApiParameter("what", enum=SUBJECTS, description="Only changes to these."),
            OpenApiParameter("who", enum=ACTORS, description="Only changes by these."),
        ],
        responses=ActivityEntrySerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """Every change to your account, your keys and your playbooks, newest first."""
        what, who = self._one_of("what", SUBJECT_FILTERS), self._one_of("who", ACTOR_FILTERS)
        rows = filter_entries(AuditEntry.objects.for_user(self.principal), what, who)
        page: Any = self.paginate_queryset(rows)
        shown = ActivityEntrySerializer(
            activity_entries(list(page), self.principal.user), many=True
        )
        return self.get_paginated_response(shown.data)

    def _one_of(self, name: str, known: Collection[str]) -> str:
        text = self.request.query_params.get(name, "")
        if text not in known:
            raise Invalid.field(name, f"Send one of: {', '.join(filter(None, known))}.")
        return text
