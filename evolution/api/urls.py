"""REST routes of outcomes, evolutions, sources and sessions."""

from django.urls import URLPattern

from core.rest.views import route
from evolution.api import views

PLAYBOOK = "playbooks/<uuid:pk>"
outcomes, evidence = views.OutcomeViewSet, views.EvidenceViewSet
evolutions, sessions = views.EvolutionViewSet, views.SessionViewSet
shares = views.ShareLinkViewSet
urlpatterns: list[URLPattern] = [
    route(f"{PLAYBOOK}/outcomes", outcomes, get="list_outcomes", post="report_outcome"),
    route("outcomes", outcomes, patch="update_outcomes_by_ref"),
    route("outcomes/<uuid:pk>", outcomes, get="get_outcome", patch="update_outcome"),
    route(f"{PLAYBOOK}/cases", evidence, get="list_cases", post="add_cases"),
    route(f"{PLAYBOOK}/cases/next", evidence, post="get_next_case"),
    route(f"{PLAYBOOK}/metrics", evidence, get="get_metrics"),
    route(f"{PLAYBOOK}/evidence", evidence, get="get_evidence"),
    route(f"{PLAYBOOK}/ledger", evidence, get="get_bullet_ledger"),
    route(f"{PLAYBOOK}/sources", evidence, get="list_sources"),
    route(f"{PLAYBOOK}/sources/rollback", evidence, post="rollback_source"),
    route(f"{PLAYBOOK}/shares", shares, get="list_share_links", post="create_share_link"),
    route("shares/<uuid:pk>", shares, delete="revoke_share_link"),
    route(f"{PLAYBOOK}/evolutions", evolutions, get="list_evolutions", post="trigger_evolution"),
    route("evolutions/<uuid:pk>", evolutions, get="get_evolution"),
    route("evolutions/<uuid:pk>/cancel", evolutions, post="cancel_evolution"),
    route("evolutions/<uuid:pk>/retry", evolutions, post="retry_evolution"),
    route("sessions", sessions, get="list_sessions", post="open_session"),
    route("sessions/<uuid:pk>", sessions, get="get_session", delete="delete_session"),
    route("sessions/<uuid:pk>/messages", sessions, get="list_messages", post="add_messages"),
    route("sessions/<uuid:pk>/close", sessions, post="close_session"),
]
