"""Pages of outcomes, evolutions, sessions and the playground."""

from django.urls import URLPattern, path
from django.views.generic import RedirectView

from evolution.web import (
    evidence_views,
    evolution_views,
    inbox_views,
    outcome_views,
    overview_views,
    playground_views,
    session_views,
)

PLAYBOOK = "playbooks/<uuid:pk>"
urlpatterns: list[URLPattern] = [
    path("overview", overview_views.overview, name="overview"),
    path(f"{PLAYBOOK}/overview", overview_views.playbook_overview, name="playbook_overview"),
    path(f"{PLAYBOOK}/outcomes", outcome_views.outcomes, name="outcomes"),
    path(f"{PLAYBOOK}/outcomes/new", outcome_views.report, name="report_outcome"),
    path(f"{PLAYBOOK}/outcomes/<uuid:outcome>", outcome_views.outcome, name="outcome"),
    path(f"{PLAYBOOK}/evolutions", evolution_views.evolutions, name="evolutions"),
    path(f"{PLAYBOOK}/evidence", evidence_views.evidence, name="evidence"),
    path(f"{PLAYBOOK}/ledger", evidence_views.ledger, name="ledger"),
    path(f"{PLAYBOOK}/trials", evidence_views.start, name="start_trial"),
    path(f"{PLAYBOOK}/cases", evidence_views.add_cases, name="add_cases"),
    path(f"{PLAYBOOK}/outcomes/<uuid:outcome>/case", evidence_views.keep_case, name="keep_case"),
    path("cases/<uuid:pk>/remove", evidence_views.remove_case, name="remove_case"),
    path("trials/<uuid:pk>/end", evidence_views.end, name="end_trial"),
    path(f"{PLAYBOOK}/sources", evidence_views.sources, name="sources"),
    path(f"{PLAYBOOK}/sources/<str:source>", evidence_views.rollback, name="rollback_source"),
    path(f"{PLAYBOOK}/shares", evidence_views.shares, name="shares"),
    path("shares/<uuid:pk>/revoke", evidence_views.revoke, name="revoke_share"),
    path("share/<str:token>", evidence_views.shared, name="shared"),
    path("inbox", inbox_views.inbox, name="inbox"),
    path(f"{PLAYBOOK}/reviews", RedirectView.as_view(url="/inbox?playbook=%(pk)s")),
    path("playground", playground_views.start, name="playground"),
    path("playground/<uuid:pk>", playground_views.chat, name="playground_chat"),
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
    path("evolutions/<uuid:pk>", evolution_views.job, name="evolution"),
    path("evolutions/<uuid:pk>/cancel", evolution_views.cancel, name="cancel_evolution"),
    path("evolutions/<uuid:pk>/retry", evolution_views.retry, name="retry_evolution"),
]
