from django.urls import URLPattern, path

from billing.api import views as api_views
from billing.api import views as payment
from billing.api import views as rest

urlpatterns: list[URLPattern] = [
    path("billing/usage", rest.UsageView.as_view(), name="usage"),
    path("billing/budgets", api_views.BudgetListView.as_view(), name="budgets"),
    path(
        "billing/budgets/<uuid:pk>", api_views.PlaybookBudgetView.as_view(), name="playbook_budget"
    ),
    path("billing/subscription", rest.SubscriptionView.as_view(), name="subscription"),
    path("billing/subscribe", payment.SubscribeView.as_view(), name="subscribe"),
    path("billing/portal", payment.BillingPortalView.as_view(), name="portal"),
    path("billing/webhook", payment.StripeWebhookView.as_view(), name="webhook"),
]
