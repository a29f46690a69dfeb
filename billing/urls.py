"""The table of this app's doors: pages and REST."""

from django.urls import URLPattern, path

from billing import api as rest
from billing import payment_api as payment
from billing import views

pages: list[URLPattern] = [
    path("usage", views.usage, name="usage"),
    path("usage.csv", views.usage_csv, name="usage_csv"),
]
api: list[URLPattern] = [
    path("billing/usage", rest.UsageDoor.as_view(), name="usage"),
    path("billing/subscription", rest.SubscriptionDoor.as_view(), name="subscription"),
    path("billing/subscribe", payment.SubscribeDoor.as_view(), name="subscribe"),
    path("billing/portal", payment.PortalDoor.as_view(), name="portal"),
    path("billing/webhook", payment.WebhookDoor.as_view(), name="webhook"),
]
