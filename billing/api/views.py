"""REST views of usage, plans, budgets and payment."""

from typing import Any
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from billing.api import serializers as s
from billing.errors import require_billing
from billing.limits.overage import set_overage
from billing.limits.spending import Budget, list_budgets, set_budget
from billing.plans.summary import PlanSummary, summarize_plan
from billing.stripe import subscriptions, sync
from billing.usage.reports import usage_summary
from core.http.requests import site_url
from core.rest.views import BaseViewSet, operation, with_choices
from core.security.scopes import Scope


class UsageViewSet(BaseViewSet):
    @operation(Scope.READ, s.UsageSerializer, parameters=[s.UsageQuerySerializer])
    def get_usage(self) -> dict[str, Any]:
        """Get the usage and cost of your playbooks by day, week or month, optionally grouped."""
        query = s.UsageQuerySerializer(data=self.request.query_params)
        if not query.is_valid():
            raise ValidationError(with_choices(query, query.errors))
        sent: dict[str, Any] = query.validated_data
        since, until = sent.pop("from", None), sent.pop("to", None)
        summary = usage_summary(who=self.principal, since=since, until=until, **sent)
        return {
            "period": sent["period"],
            "group_by": sent.get("group_by"),
            **vars(summary),
            "next": None,
            "previous": None,
        }


class BudgetViewSet(BaseViewSet):
    @operation(Scope.READ, s.BudgetListSerializer)
    def list_budgets(self) -> dict[str, Any]:
        """Get your daily and monthly budgets and how much of each is spent."""
        return {"next": None, "previous": None, "results": list_budgets(who=self.principal)}

    @operation(Scope.ACCOUNT, s.BudgetSerializer, takes=s.BudgetUpdateSerializer)
    def set_budget(self, sent: dict[str, Any]) -> Budget:
        """Set the budget of your account. Without an amount it is removed."""
        return self._set(None, sent)

    @operation(Scope.ACCOUNT, s.BudgetSerializer, takes=s.BudgetUpdateSerializer)
    def set_playbook_budget(self, pk: UUID, sent: dict[str, Any]) -> Budget:
        """Set the budget of one of your playbooks. Without an amount it is removed."""
        return self._set(pk, sent)

    def _set(self, playbook_id: UUID | None, sent: dict[str, Any]) -> Budget:
        set_budget(by=self.principal, playbook_id=playbook_id, **sent)
        budgets = {one.playbook_id: one for one in list_budgets(who=self.principal)}
        return budgets.get(playbook_id, Budget(playbook_id))


class PaymentViewSet(BaseViewSet):
    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Raise BillingDisabled before the body is validated."""
        super().initial(request, *args, **kwargs)
        require_billing()

    @operation(Scope.ACCOUNT, s.SubscriptionSerializer)
    def get_subscription(self) -> PlanSummary:
        """Get your plan, its period and usage; `billing_disabled` (404) while billing is off."""
        return summarize_plan(user=self.principal.user)

    @operation(Scope.ACCOUNT, s.SubscriptionSerializer, takes=s.OverageUpdateSerializer)
    def set_overage(self, sent: dict[str, Any]) -> PlanSummary:
        """Turn overage on or off: model calls continue beyond the plan, at `overage_price`.

        They stop at the account's monthly budget: set one that `stops` first.
        `overage_unavailable` (409): the message says why. `billing_disabled` (404) while billing is
        off.
        """
        user = self.principal.user
        set_overage(account=summarize_plan(user=user).account, by=self.principal, **sent)
        return summarize_plan(user=user)

    @operation(Scope.ACCOUNT, s.RedirectUrlSerializer, takes=s.SubscriptionCreateSerializer)
    def subscribe(self, sent: dict[str, Any]) -> dict[str, str]:
        """Start a checkout for a plan: returns the URL where it is paid.

        Repeating it returns the open checkout. `already_subscribed` (409): change the plan in the
        billing portal instead. `billing_disabled` (404) while billing is off.
        """
        user, site = self.principal.user, site_url(self.request._request)
        return {"url": subscriptions.subscribe(user=user, site=site, by=self.principal, **sent)}

    @operation(Scope.ACCOUNT, s.RedirectUrlSerializer)
    def open_billing_portal(self) -> dict[str, str]:
        """Open the billing portal: returns the URL to change card or plan, or to cancel.

        `no_customer` (409) before the first plan. `billing_disabled` (404) while billing is off.
        """
        site = site_url(self.request._request)
        return {"url": subscriptions.open_portal(user=self.principal.user, site=site)}


class StripeWebhookViewSet(BaseViewSet):
    """Public, because Stripe signs its events."""

    authentication_classes = ()

    @extend_schema(request=OpenApiTypes.OBJECT)
    @operation(
        None,
        s.WebhookReceiptSerializer,
        parameters=[
            OpenApiParameter("Stripe-Signature", str, OpenApiParameter.HEADER, required=True)
        ],
    )
    def receive_stripe_webhook(self) -> dict[str, bool]:
        """Receive a signed event from Stripe; `bad_signature` (400) for any other.

        Answers `billing_disabled` (404) while billing is off.
        """
        signature = self.request.headers.get("Stripe-Signature", "")
        return {
            "received": sync.receive_event(body=self.request._request.body, signature=signature)
        }
