"""What it costs, at the REST door."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.errors import AceError
from accounts.rest import Door
from accounts.scopes import Scope
from billing.shapes import UsageQuery, UsageShape
from billing.summaries import usage_summary


class BillingDisabled(AceError):
    """Plans and payment are not switched on here."""

    code = "billing_disabled"
    status = 404

    def __init__(self) -> None:
        super().__init__("Billing is off on this server: there is no plan to choose or to pay for.")


class UsageDoor(Door):
    """GET /billing/usage."""

    scopes: ClassVar = {"GET": Scope.READ}

    @extend_schema(operation_id="read_usage", parameters=[UsageQuery], responses=UsageShape)
    def get(self, request: Request) -> Response:
        """What your playbooks used and cost, by day, week or month, and by what you choose."""
        query = UsageQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        asked: dict[str, Any] = query.validated_data
        since, until = asked.pop("from", None), asked.pop("to", None)
        found = usage_summary(who=self.who, since=since, until=until, **asked)
        body = {
            "period": asked["period"],
            "group_by": asked.get("group_by"),
            "since": found.since,
            "until": found.until,
            "total": found.total,
            "next": None,
            "previous": None,
            "results": found.rows,
        }
        return Response(UsageShape(body).data)


class SubscriptionDoor(Door):
    """GET /billing/subscription."""

    scopes: ClassVar = {"GET": Scope.ACCOUNT}

    @extend_schema(operation_id="read_subscription", responses={200: None})
    def get(self, request: Request) -> Response:
        """Your plan. Answers `billing_disabled` while billing is off."""
        raise BillingDisabled


class SubscribeDoor(Door):
    """POST /billing/subscribe."""

    scopes: ClassVar = {"POST": Scope.ACCOUNT}

    @extend_schema(operation_id="subscribe", request=None, responses={200: None})
    def post(self, request: Request) -> Response:
        """Choose a plan. Answers `billing_disabled` while billing is off."""
        raise BillingDisabled


class PortalDoor(Door):
    """POST /billing/portal."""

    scopes: ClassVar = {"POST": Scope.ACCOUNT}

    @extend_schema(operation_id="open_billing_portal", request=None, responses={200: None})
    def post(self, request: Request) -> Response:
        """Open the payment portal. Answers `billing_disabled` while billing is off."""
        raise BillingDisabled


class WebhookDoor(Door):
    """POST /billing/webhook: public, because the sender signs what it sends."""

    scopes: ClassVar = {"POST": None}
    authentication_classes = ()

    @extend_schema(operation_id="receive_billing_event", request=None, responses={200: None})
    def post(self, request: Request) -> Response:
        """Events of the payment provider. Answers `billing_disabled` while billing is off."""
        raise BillingDisabled
