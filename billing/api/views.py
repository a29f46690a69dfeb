"""REST views of usage, plans, budgets and payment."""

from typing import Any, ClassVar
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from billing.api.serializers import (
    BudgetListSerializer,
    BudgetSerializer,
    BudgetUpdateSerializer,
    RedirectUrlSerializer,
    SubscriptionCreateSerializer,
    SubscriptionSerializer,
    UsageQuerySerializer,
    UsageSerializer,
    WebhookReceiptSerializer,
)
from billing.errors import require_billing
from billing.limits.spending import Budget, list_budgets, set_budget
from billing.plans.summary import summarize_plan
from billing.stripe import subscriptions, sync
from billing.usage.reports import usage_summary
from core.http.requests import site_url
from core.rest.views import BaseAPIView
from core.security.scopes import Scope


class UsageView(BaseAPIView):
    """GET /billing/usage."""

    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(
        operation_id="get_usage", parameters=[UsageQuerySerializer], responses=UsageSerializer
    )
    def get(self, request: Request) -> Response:
        """Usage and cost of your playbooks by day, week or month, optionally grouped."""
        query = UsageQuerySerializer(data=request.query_params)
        query.is_valid(raise_exception=True)
        sent: dict[str, Any] = query.validated_data
        since, until = sent.pop("from", None), sent.pop("to", None)
        summary = usage_summary(who=self.principal, since=since, until=until, **sent)
        body = {
            "period": sent["period"],
            "group_by": sent.get("group_by"),
            "since": summary.since,
            "until": summary.until,
            "total": summary.total,
            "next": None,
            "previous": None,
            "results": summary.rows,
        }
        return Response(UsageSerializer(body).data)


class SubscriptionView(BaseAPIView):
    """GET /billing/subscription."""

    scopes: ClassVar = {"GET": Scope.ACCOUNT}

    @extend_schema(operation_id="get_subscription", responses=SubscriptionSerializer)
    def get(self, request: Request) -> Response:
        """Your plan, its period and usage; `billing_disabled` (404) while billing is off."""
        return Response(SubscriptionSerializer(summarize_plan(user=self.principal.user)).data)


class BudgetListView(BaseAPIView):
    """GET PUT /billing/budgets."""

    scopes: ClassVar = {"GET": Scope.READ, "PUT": Scope.ACCOUNT}

    @extend_schema(operation_id="list_budgets", responses=BudgetListSerializer)
    def get(self, request: Request) -> Response:
        """Your daily and monthly budgets and how much of each is spent."""
        body = {"next": None, "previous": None, "results": list_budgets(who=self.principal)}
        return Response(BudgetListSerializer(body).data)

    @extend_schema(
        operation_id="set_budget", request=BudgetUpdateSerializer, responses=BudgetSerializer
    )
    def put(self, request: Request) -> Response:
        """Set the budget of your account. Without an amount it is removed."""
        return put_budget(self, None)


class PlaybookBudgetView(BaseAPIView):
    """PUT /billing/budgets/{pk}."""

    scopes: ClassVar = {"PUT": Scope.ACCOUNT}

    @extend_schema(
        operation_id="set_playbook_budget",
        request=BudgetUpdateSerializer,
        responses=BudgetSerializer,
    )
    def put(self, request: Request, pk: UUID) -> Response:
        """Set the budget of one of your playbooks. Without an amount it is removed."""
        return put_budget(self, pk)


def put_budget(view: BaseAPIView, playbook_id: UUID | None) -> Response:
    sent: dict[str, Any] = view.validated_body(BudgetUpdateSerializer)
    set_budget(by=view.principal, playbook_id=playbook_id, **sent)
    budgets = {one.playbook_id: one for one in list_budgets(who=view.principal)}
    return Response(BudgetSerializer(budgets.get(playbook_id, Budget(playbook_id))).data)


class SubscribeView(BaseAPIView):
    """POST /billing/subscribe."""

    scopes: ClassVar = {"POST": Scope.ACCOUNT}

    @extend_schema(
        operation_id="subscribe",
        request=SubscriptionCreateSerializer,
        responses=RedirectUrlSerializer,
    )
    def post(self, request: Request) -> Response:
        """Start a checkout for a plan: returns the URL where it is paid.

        Repeating it returns the open checkout. `already_subscribed` (409): change the plan in the
        billing portal instead. `billing_disabled` (404) while billing is off.
        """
        require_billing()
        chosen: dict[str, Any] = self.validated_body(SubscriptionCreateSerializer)
        user, site = self.principal.user, site_url(request._request)
        url = subscriptions.subscribe(user=user, site=site, by=self.principal, **chosen)
        return Response(RedirectUrlSerializer({"url": url}).data)


class BillingPortalView(BaseAPIView):
    """POST /billing/portal."""

    scopes: ClassVar = {"POST": Scope.ACCOUNT}

    @extend_schema(
        operation_id="open_billing_portal", request=None, responses=RedirectUrlSerializer
    )
    def post(self, request: Request) -> Response:
        """Open the billing portal: returns the URL to change card or plan, or to cancel.

        `no_customer` (409) before the first plan. `billing_disabled` (404) while billing is off.
        """
        url = subscriptions.open_portal(user=self.principal.user, site=site_url(request._request))
        return Response(RedirectUrlSerializer({"url": url}).data)


class StripeWebhookView(BaseAPIView):
    """POST /billing/webhook: public, because Stripe signs its events."""

    scopes: ClassVar = {"POST": None}
    authentication_classes = ()

    @extend_schema(
        operation_id="receive_stripe_webhook",
        parameters=[
            OpenApiParameter("Stripe-Signature", str, OpenApiParameter.HEADER, required=True)
        ],
        request=OpenApiTypes.OBJECT,
        responses=WebhookReceiptSerializer,
    )
    def post(self, request: Request) -> Response:
        """Receive a signed event of Stripe; `bad_signature` (400) for any other.

        Answers `billing_disabled` (404) while billing is off.
        """
        signature = request.headers.get("Stripe-Signature", "")
        received = sync.receive_event(body=request._request.body, signature=signature)
        return Response(WebhookReceiptSerializer({"received": received}).data)
