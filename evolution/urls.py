"""The table of this app's doors: pages and REST."""

from django.urls import URLPattern, path

from evolution import api as rest
from evolution import (
    evidence_views,
    playground_views,
    session_api,
    session_views,
    source_api,
    source_views,
    views,
)

PLAYBOOK = "playbooks/<uuid:pk>"
pages: list[URLPattern] = [
    path(f"{PLAYBOOK}/outcomes", views.outcomes, name="outcomes"),
    path(f"{PLAYBOOK}/outcomes/new", views.report, name="report"),
    path(f"{PLAYBOOK}/outcomes/<uuid:outcome>", views.outcome, name="outcome"),
    path(f"{PLAYBOOK}/evolutions", views.evolutions, name="evolutions"),
    path(f"{PLAYBOOK}/evidence", evidence_views.evidence, name="evidence"),
    path(f"{PLAYBOOK}/sources", source_views.sources, name="sources"),
    path(f"{PLAYBOOK}/sources/<str:source>", source_views.rollback, name="rollback_source"),
    path("playground", playground_views.start, name="playground"),
    path("playground/recorded", playground_views.demo, name="playground_demo"),
    path("playground/<uuid:pk>", playground_views.chat, name="playground_chat"),
    path("playground/<uuid:pk>/ask", playground_views.ask, name="playground_ask"),
    path("playground/<uuid:pk>/stream", playground_views.stream, name="playground_stream"),
    path("playground/<uuid:pk>/rate", playground_views.rate, name="playground_rate"),
    path(
        f"{PLAYBOOK}/bullets/<str:bullet>/sessions",
        session_views.bullet_sessions,
        name="bullet_sessions",
    ),
    path("sessions", session_views.sessions, name="sessions"),
    path("sessions/<uuid:pk>", session_views.session, name="session"),
    path("sessions/<uuid:pk>/close", session_views.close, name="close_session"),
    path("sessions/<uuid:pk>/delete", session_views.delete, name="delete_session"),
    path("evolutions/<uuid:pk>", views.job, name="job"),
    path("evolutions/<uuid:pk>/cancel", views.cancel, name="cancel"),
    path("evolutions/<uuid:pk>/retry", views.retry, name="retry"),
]
api: list[URLPattern] = [
    path(f"{PLAYBOOK}/outcomes", rest.OutcomesDoor.as_view(), name="outcomes"),
    path(f"{PLAYBOOK}/metrics", rest.MetricsDoor.as_view(), name="metrics"),
    path(f"{PLAYBOOK}/evidence", rest.EvidenceDoor.as_view(), name="evidence"),
    path(f"{PLAYBOOK}/evolutions", rest.EvolutionsDoor.as_view(), name="evolutions"),
    path(f"{PLAYBOOK}/sources", source_api.SourcesDoor.as_view(), name="sources"),
    path(
        f"{PLAYBOOK}/sources/rollback",
        source_api.RollbackSourceDoor.as_view(),
        name="rollback_source",
    ),
    path("evolutions/<uuid:pk>", rest.EvolutionDoor.as_view(), name="job"),
    path("evolutions/<uuid:pk>/cancel", rest.CancelDoor.as_view(), name="cancel"),
    path("evolutions/<uuid:pk>/retry", rest.RetryDoor.as_view(), name="retry"),
    path("sessions", session_api.SessionsDoor.as_view(), name="sessions"),
    path("sessions/<uuid:pk>", session_api.SessionDoor.as_view(), name="session"),
    path("sessions/<uuid:pk>/messages", session_api.MessagesDoor.as_view(), name="messages"),
    path("sessions/<uuid:pk>/close", session_api.CloseDoor.as_view(), name="close_session"),
]
