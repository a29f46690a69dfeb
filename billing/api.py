"""What it costs, at the REST door."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.rest import Door
from accounts.scopes import Scope
from billing.own_plan import read_plan
from billing.plan_shapes import SubscriptionShape
from billing.shapes import UsageQuery, UsageShape
from billing.summaries import usage_summary


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

    @extend_schema(operation_id="read_subscription", responses=SubscriptionShape)
    def get(self, request: Request) -> Response:
        """Your plan, its period and what of it is used; `billing_disabled` while billing is off."""
        return Response(SubscriptionShape(read_plan(user=self.who.user)).data)
