"""REST routes of playbooks."""

from django.urls import URLPattern

from core.rest.views import route
from playbooks.api import views

PLAYBOOK = "playbooks/<uuid:pk>"
VERSION = f"{PLAYBOOK}/versions/<int:number>"
REVIEW = f"{PLAYBOOK}/reviews/<uuid:review>"
playbooks, versions = views.PlaybookViewSet, views.VersionViewSet
reviews, trials = views.ReviewItemViewSet, views.TrialViewSet
urlpatterns: list[URLPattern] = [
    route("playbooks", playbooks, get="list_playbooks", post="create_playbook"),
    route("playbooks/import", playbooks, post="import_playbook"),
    route(
        *(PLAYBOOK, playbooks),
        get="get_playbook",
        put="replace_playbook",
        patch="update_playbook",
        delete="archive_playbook",
    ),
    route(f"{PLAYBOOK}/clone", playbooks, post="clone_playbook"),
    route(f"{PLAYBOOK}/export", playbooks, get="export_playbook"),
    route(f"{PLAYBOOK}/sections", playbooks, get="list_sections"),
    route(f"{PLAYBOOK}/bullets", playbooks, get="list_bullets"),
    route(f"{PLAYBOOK}/bullets/<str:bullet>/history", playbooks, get="get_bullet_history"),
    route(f"{PLAYBOOK}/deltas", playbooks, post="edit_playbook"),
    route(f"{PLAYBOOK}/versions", versions, get="list_versions"),
    route(VERSION, versions, get="get_version"),
    route(f"{VERSION}/diff", versions, get="diff_versions"),
    route(f"{VERSION}/rollback", versions, post="rollback_playbook"),
    route(f"{VERSION}/undo", versions, post="undo_version"),
    route(f"{PLAYBOOK}/seals", versions, get="export_seals"),
    route(f"{PLAYBOOK}/reviews", reviews, get="list_review_items"),
    route(f"{REVIEW}/approve", reviews, post="approve_review_item"),
    route(f"{REVIEW}/decline", reviews, post="decline_review_item"),
    route(f"{PLAYBOOK}/trials", trials, get="list_trials", post="start_trial"),
    route("trials/<uuid:pk>", trials, get="get_trial"),
    route("trials/<uuid:pk>/end", trials, post="end_trial"),
]
