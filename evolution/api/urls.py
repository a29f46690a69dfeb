"""REST routes of outcomes, evolutions, sources and sessions."""

from django.urls import URLPattern, path

from evolution.api import views

PLAYBOOK = "playbooks/<uuid:pk>"
urlpatterns: list[URLPattern] = [
    path(f"{PLAYBOOK}/outcomes", views.OutcomeListView.as_view(), name="outcomes"),
    path("outcomes", views.OutcomeByRefView.as_view(), name="outcomes_by_ref"),
    path("outcomes/<uuid:pk>", views.OutcomeDetailView.as_view(), name="outcome"),
    path(f"{PLAYBOOK}/cases", views.CaseListView.as_view(), name="cases"),
    path(f"{PLAYBOOK}/cases/next", views.NextCaseView.as_view(), name="next_case"),
    path(f"{PLAYBOOK}/metrics", views.PlaybookMetricsView.as_view(), name="metrics"),
    path(f"{PLAYBOOK}/evidence", views.EvidenceView.as_view(), name="evidence"),
    path(f"{PLAYBOOK}/ledger", views.LedgerView.as_view(), name="ledger"),
    path(f"{PLAYBOOK}/evolutions", views.EvolutionListView.as_view(), name="evolutions"),
    path(f"{PLAYBOOK}/sources", views.SourceListView.as_view(), name="sources"),
    path(
        f"{PLAYBOOK}/sources/rollback",
        views.RollbackSourceView.as_view(),
        name="rollback_source",
    ),
    path("evolutions/<uuid:pk>", views.EvolutionDetailView.as_view(), name="evolution"),
    path(
        "evolutions/<uuid:pk>/cancel", views.CancelEvolutionView.as_view(), name="cancel_evolution"
    ),
    path("evolutions/<uuid:pk>/retry", views.RetryEvolutionView.as_view(), name="retry_evolution"),
    path("sessions", views.SessionListView.as_view(), name="sessions"),
    path("sessions/<uuid:pk>", views.SessionDetailView.as_view(), name="session"),
    path(
        "sessions/<uuid:pk>/messages",
        views.SessionMessageListView.as_view(),
        name="messages",
    ),
    path("sessions/<uuid:pk>/close", views.CloseSessionView.as_view(), name="close_session"),
]
