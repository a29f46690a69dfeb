"""URLs of billing under /api/v1."""

from django.urls import URLPattern, path

from billing.api import views
from core.rest.views import route

budgets, payment = views.BudgetViewSet, views.PaymentViewSet
stripe_webhook = views.StripeWebhookViewSet.as_view({"post": "receive_stripe_webhook"})
urlpatterns: list[URLPattern] = [
    route("billing/usage", views.UsageViewSet, get="get_usage"),
    route("billing/budgets", budgets, get="list_budgets", put="set_budget"),
    route("billing/budgets/<uuid:pk>", budgets, put="set_playbook_budget"),
    route("billing/subscription", payment, get="get_subscription"),
    route("billing/overage", payment, put="set_overage"),
    route("billing/subscribe", payment, post="subscribe"),
    route("billing/portal", payment, post="open_billing_portal"),
    path("billing/webhook", stripe_webhook, name="webhook"),
]
