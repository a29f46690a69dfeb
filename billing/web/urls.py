"""URLs of the usage, budget and plan pages."""

from django.urls import URLPattern, path

from billing.web import plan_views, usage_views

urlpatterns: list[URLPattern] = [
    path("usage", usage_views.usage, name="usage"),
    path("usage.csv", usage_views.usage_csv, name="usage_csv"),
    path("usage/budgets", usage_views.budgets, name="budgets"),
    path("usage/budgets/set", usage_views.edit_budget, name="set_budget"),
    path("billing", plan_views.plan, name="plan"),
    path("billing/confirmation", plan_views.confirmation, name="confirmation"),
    path("billing/subscribe", plan_views.subscribe, name="subscribe"),
    path("billing/portal", plan_views.portal, name="portal"),
    path("billing/overage", plan_views.overage, name="overage"),
]
