"""Choosing a plan and paying for it, at the REST door; and where the payment provider calls."""

from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.rest import Door, site_of
from accounts.scopes import Scope
from billing import subscriptions, syncing
from billing.refusals import require_billing


class SubscribeShape(serializers.Serializer[Any]):
    """Which plan to pay for."""

    plan = serializers.CharField(max_length=40, help_text="The plan's slug, such as `pro`.")


class PlaceShape(serializers.Serializer[Any]):
    """Where to send the person's browser."""

    url = serializers.URLField(help_text="A page of the payment provider; good for a short time.")


class ReceivedShape(serializers.Serializer[Any]):
    """What became of an event."""

    received = serializers.BooleanField(help_text="False: nothing was to do.")


class SubscribeDoor(Door):
    """POST /billing/subscribe."""

    scopes: ClassVar = {"POST": Scope.ACCOUNT}

    @extend_schema(operation_id="subscribe", request=SubscribeShape, responses=PlaceShape)
    def post(self, request: Request) -> Response:
        """Choose a plan: the address of the page where it is paid.

        Asking again gives the page that is open. `already_subscribed` (409) while there is a
        subscription: it is changed in the portal. `billing_disabled` (404) while billing is off.
        """
        require_billing()
        plan = self.sent(SubscribeShape)["plan"]
        user, site = self.who.user, site_of(request)
        url = subscriptions.subscribe(user=user, plan=plan, site=site, by=self.who)
        return Response(PlaceShape({"url": url}).data)


class PortalDoor(Door):
    """POST /billing/portal."""

    scopes: ClassVar = {"POST": Scope.ACCOUNT}

    @extend_schema(operation_id="open_billing_portal", request=None, responses=PlaceShape)
    def post(self, request: Request) -> Response:
        """The address of the page where card and plan are changed, and a plan is cancelled.

        `no_customer` (409) before the first plan. `billing_disabled` (404) while billing is off.
        """
        url = subscriptions.open_portal(user=self.who.user, site=site_of(request))
        return Response(PlaceShape({"url": url}).data)


class WebhookDoor(Door):
    """POST /billing/webhook: public, because the sender signs what it sends."""

    scopes: ClassVar = {"POST": None}
    authentication_classes = ()

    @extend_schema(
        operation_id="receive_billing_event",
        parameters=[
            OpenApiParameter("Stripe-Signature", str, OpenApiParameter.HEADER, required=True)
        ],
        request=OpenApiTypes.OBJECT,
        responses=ReceivedShape,
    )
    def post(self, request: Request) -> Response:
        """Events of the payment provider, signed by it; `bad_signature` (400) for any other.

        Answers `billing_disabled` (404) while billing is off.
        """
        signature = request.headers.get("Stripe-Signature", "")
        received = syncing.receive_event(body=request._request.body, signature=signature)
        return Response(ReceivedShape({"received": received}).data)
