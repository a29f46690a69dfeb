"""REST views of the review queue: list, approve, decline."""

from typing import ClassVar
from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.rest.idempotency import idempotent
from core.security.scopes import Scope
from playbooks.api.serializers import ReviewItemApproveSerializer, ReviewItemSerializer
from playbooks.api.views.base import BasePlaybookView, choice_param
from playbooks.models import ReviewItem
from playbooks.review.decisions import approve_review_item, decline_review_item

STATES = (*ReviewItem.State.values, "all")


class ReviewItemListView(BasePlaybookView):
    """GET /playbooks/{id}/reviews."""

    @extend_schema(
        operation_id="list_review_items",
        parameters=[OpenApiParameter("state", str, enum=STATES, default="pending")],
        responses=ReviewItemSerializer(many=True),
    )
    def get(self, request: Request, pk: UUID) -> Response:
        """List the texts of agents and models that need review, newest first."""
        state = choice_param(request, "state", STATES)
        rows = ReviewItem.objects.for_user(self.principal).filter(playbook=self.own_playbook(pk))
        if state != "all":
            rows = rows.filter(state=state)
        return self.paginate(rows.select_related("delta", "version"), ReviewItemSerializer)


class BaseReviewItemView(BasePlaybookView):
    """One review item. Only people decide: no API key can approve what agents contributed."""

    scopes: ClassVar = {"POST": Scope.ACCOUNT}

    def review_item(self, pk: UUID, review: UUID) -> ReviewItem:
        rows = ReviewItem.objects.for_user(self.principal).filter(playbook=self.own_playbook(pk))
        return rows.select_related("delta", "playbook", "version").fetch(review)


class ReviewItemApproveView(BaseReviewItemView):
    """POST /playbooks/{id}/reviews/{review}/approve."""

    @extend_schema(
        operation_id="approve_review_item",
        request=ReviewItemApproveSerializer,
        responses={201: ReviewItemSerializer},
    )
    @idempotent()
    def post(self, request: Request, pk: UUID, review: UUID) -> Response:
        """Approve an item, optionally with your own text: a new version is published."""
        sent = self.validated_body(ReviewItemApproveSerializer)
        made = approve_review_item(item=self.review_item(pk, review), by=self.principal, **sent)
        return Response(ReviewItemSerializer(made.item).data, status=201)


class ReviewItemDeclineView(BaseReviewItemView):
    """POST /playbooks/{id}/reviews/{review}/decline."""

    @extend_schema(operation_id="decline_review_item", request=None, responses=ReviewItemSerializer)
    def post(self, request: Request, pk: UUID, review: UUID) -> Response:
        """Decline an item; the same text is rejected from now on."""
        made = decline_review_item(item=self.review_item(pk, review), by=self.principal)
        return Response(ReviewItemSerializer(made).data)
