"""REST API of the activity log."""

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

SUBJECTS, ACTORS = list(filter(None, SUBJECT_FILTERS)), list(filter(None, ACTOR_FILTERS))
ACTOR_CHOICES = [*ACTORS, "platform"]


class ActivityEntrySerializer(serializers.Serializer[Any]):
    """One change to the account, its keys or its playbooks."""

    at = serializers.DateTimeField()
    action = serializers.CharField(help_text="Name of the operation; stable.")
    summary = serializers.CharField(help_text="The same as a phrase.")
    by = serializers.ChoiceField(choices=ACTOR_CHOICES, help_text="`key`: one of your API keys.")
    key = serializers.CharField(help_text="Beginning of that key; else empty.")
    subject = serializers.CharField(help_text="Type of the object, such as playbook.")
    subject_id = serializers.CharField()
    subject_name = serializers.CharField(help_text="Current name of the playbook or key, or empty.")
    detail = serializers.CharField(help_text="Figures of the change; never texts.")


class ActivityView(BaseAPIView):
    """GET /activity."""

    scopes: ClassVar = {"GET": Scope.ACCOUNT}
    ordering = ("-id",)

    @extend_schema(
        operation_id="list_activity",
        parameters=[
            OpenApiParameter("what", enum=SUBJECTS, description="Only changes to these."),
            OpenApiParameter("who", enum=ACTORS, description="Only changes by these."),
        ],
        responses=ActivityEntrySerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """List every change to your account, keys and playbooks, newest first."""
        what, who = self._one_of("what", SUBJECT_FILTERS), self._one_of("who", ACTOR_FILTERS)
        rows = filter_entries(AuditEntry.objects.for_user(self.principal), what, who)
        page: Any = self.paginate_queryset(rows)
        entries = activity_entries(list(page), self.principal.user)
        return self.get_paginated_response(ActivityEntrySerializer(entries, many=True).data)

    def _one_of(self, name: str, known: Collection[str]) -> str:
        text = self.request.query_params.get(name, "")
        if text not in known:
            raise Invalid.field(name, f"Send one of: {', '.join(filter(None, known))}.")
        return text
