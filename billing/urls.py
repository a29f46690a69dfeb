"""The table of this app's doors: pages and REST."""

from django.urls import URLPattern, path

from billing import api as rest
from billing import budget_api, budget_views, plan_views, views
from billing import payment_api as payment

pages: list[URLPattern] = [
    path("usage", views.usage, name="usage"),
    path("usage.csv", views.usage_csv, name="usage_csv"),
    path("usage/budgets", budget_views.budgets, name="budgets"),
    path("usage/budgets/set", budget_views.set_one, name="set_budget"),
    path("billing", plan_views.plan, name="plan"),
    path("billing/confirmation", plan_views.confirmation, name="confirmation"),
    path("billing/subscribe", plan_views.subscribe, name="subscribe"),
    path("billing/portal", plan_views.portal, name="portal"),
]
api: list[URLPattern] = [
    path("billing/usage", rest.UsageDoor.as_view(), name="usage"),
    path("billing/budgets", budget_api.BudgetsDoor.as_view(), name="budgets"),
    path(
        "billing/budgets/<uuid:pk>", budget_api.PlaybookBudgetDoor.as_view(), name="playbook_budget"
    ),
    path("billing/subscription", rest.SubscriptionDoor.as_view(), name="subscription"),
    path("billing/subscribe", payment.SubscribeDoor.as_view(), name="subscribe"),
    path("billing/portal", payment.PortalDoor.as_view(), name="portal"),
    path("billing/webhook", payment.WebhookDoor.as_view(), name="webhook"),
]
