"""REST routes of playbooks."""

from django.urls import URLPattern, path

from playbooks.api.views import bullets, playbooks, reviews, trials, versions

PLAYBOOK = "playbooks/<uuid:pk>"
VERSION = f"{PLAYBOOK}/versions/<int:number>"
REVIEW = f"{PLAYBOOK}/reviews/<uuid:review>"
urlpatterns: list[URLPattern] = [
    path("playbooks", playbooks.PlaybookListView.as_view(), name="list"),
    path("playbooks/import", playbooks.PlaybookImportView.as_view(), name="import"),
    path(PLAYBOOK, playbooks.PlaybookDetailView.as_view(), name="detail"),
    path(f"{PLAYBOOK}/clone", playbooks.PlaybookCloneView.as_view(), name="clone"),
    path(f"{PLAYBOOK}/export", playbooks.PlaybookExportView.as_view(), name="export"),
    path(f"{PLAYBOOK}/versions", versions.VersionListView.as_view(), name="versions"),
    path(VERSION, versions.VersionDetailView.as_view(), name="version"),
    path(f"{VERSION}/diff", versions.VersionDiffView.as_view(), name="diff"),
    path(f"{VERSION}/rollback", versions.VersionRollbackView.as_view(), name="rollback"),
    path(f"{VERSION}/undo", versions.VersionUndoView.as_view(), name="undo"),
    path(f"{PLAYBOOK}/sections", bullets.SectionListView.as_view(), name="sections"),
    path(f"{PLAYBOOK}/bullets", bullets.BulletListView.as_view(), name="bullets"),
    path(
        f"{PLAYBOOK}/bullets/<str:bullet>/history",
        bullets.BulletHistoryView.as_view(),
        name="history",
    ),
    path(f"{PLAYBOOK}/reviews", reviews.ReviewItemListView.as_view(), name="reviews"),
    path(f"{REVIEW}/approve", reviews.ReviewItemApproveView.as_view(), name="approve_review_item"),
    path(f"{REVIEW}/decline", reviews.ReviewItemDeclineView.as_view(), name="decline_review_item"),
    path(f"{PLAYBOOK}/trials", trials.TrialListView.as_view(), name="trials"),
    path("trials/<uuid:pk>", trials.TrialDetailView.as_view(), name="trial"),
    path("trials/<uuid:pk>/end", trials.TrialEndView.as_view(), name="end_trial"),
    path(f"{PLAYBOOK}/deltas", bullets.PlaybookEditView.as_view(), name="deltas"),
]
