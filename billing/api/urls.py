"""URLs of billing under /api/v1."""

from django.urls import URLPattern, path

from billing.api import views

urlpatterns: list[URLPattern] = [
    path("billing/usage", views.UsageView.as_view(), name="usage"),
    path("billing/budgets", views.BudgetListView.as_view(), name="budgets"),
    path("billing/budgets/<uuid:pk>", views.PlaybookBudgetView.as_view(), name="playbook_budget"),
    path("billing/subscription", views.SubscriptionView.as_view(), name="subscription"),
    path("billing/subscribe", views.SubscribeView.as_view(), name="subscribe"),
    path("billing/portal", views.BillingPortalView.as_view(), name="portal"),
    path("billing/webhook", views.StripeWebhookView.as_view(), name="webhook"),
]
