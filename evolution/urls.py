"""The table of this app's doors: pages and REST."""

from django.urls import URLPattern, path

from evolution import api as rest
from evolution import views

PLAYBOOK = "playbooks/<uuid:pk>"
pages: list[URLPattern] = [
    path(f"{PLAYBOOK}/outcomes", views.outcomes, name="outcomes"),
    path(f"{PLAYBOOK}/outcomes/new", views.report, name="report"),
    path(f"{PLAYBOOK}/outcomes/<uuid:outcome>", views.outcome, name="outcome"),
    path(f"{PLAYBOOK}/evolutions", views.evolutions, name="evolutions"),
    path("evolutions/<uuid:pk>", views.job, name="job"),
    path("evolutions/<uuid:pk>/cancel", views.cancel, name="cancel"),
    path("evolutions/<uuid:pk>/retry", views.retry, name="retry"),
]
api: list[URLPattern] = [
    path(f"{PLAYBOOK}/outcomes", rest.OutcomesDoor.as_view(), name="outcomes"),
    path(f"{PLAYBOOK}/metrics", rest.MetricsDoor.as_view(), name="metrics"),
    path(f"{PLAYBOOK}/evolutions", rest.EvolutionsDoor.as_view(), name="evolutions"),
    path("evolutions/<uuid:pk>", rest.EvolutionDoor.as_view(), name="job"),
    path("evolutions/<uuid:pk>/cancel", rest.CancelDoor.as_view(), name="cancel"),
    path("evolutions/<uuid:pk>/retry", rest.RetryDoor.as_view(), name="retry"),
]
