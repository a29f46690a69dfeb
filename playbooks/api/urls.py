"""REST routes of playbooks."""

from django.urls import URLPattern, path

from playbooks.api import views

PLAYBOOK = "playbooks/<uuid:pk>"
VERSION = f"{PLAYBOOK}/versions/<int:number>"
REVIEW = f"{PLAYBOOK}/reviews/<uuid:review>"
urlpatterns: list[URLPattern] = [
    path("playbooks", views.PlaybookListView.as_view(), name="list"),
    path("playbooks/import", views.PlaybookImportView.as_view(), name="import"),
    path(PLAYBOOK, views.PlaybookDetailView.as_view(), name="detail"),
    path(f"{PLAYBOOK}/clone", views.PlaybookCloneView.as_view(), name="clone"),
    path(f"{PLAYBOOK}/export", views.PlaybookExportView.as_view(), name="export"),
    path(f"{PLAYBOOK}/versions", views.VersionListView.as_view(), name="versions"),
    path(VERSION, views.VersionDetailView.as_view(), name="version"),
    path(f"{VERSION}/diff", views.VersionDiffView.as_view(), name="diff"),
    path(f"{VERSION}/rollback", views.VersionRollbackView.as_view(), name="rollback"),
    path(f"{VERSION}/undo", views.VersionUndoView.as_view(), name="undo"),
    path(f"{PLAYBOOK}/seals", views.SealView.as_view(), name="seals"),
    path(f"{PLAYBOOK}/sections", views.SectionListView.as_view(), name="sections"),
    path(f"{PLAYBOOK}/bullets", views.BulletListView.as_view(), name="bullets"),
    path(
        f"{PLAYBOOK}/bullets/<str:bullet>/history",
        views.BulletHistoryView.as_view(),
        name="history",
    ),
    path(f"{PLAYBOOK}/reviews", views.ReviewItemListView.as_view(), name="reviews"),
    path(f"{REVIEW}/approve", views.ReviewItemApproveView.as_view(), name="approve_review_item"),
    path(f"{REVIEW}/decline", views.ReviewItemDeclineView.as_view(), name="decline_review_item"),
    path(f"{PLAYBOOK}/trials", views.TrialListView.as_view(), name="trials"),
    path("trials/<uuid:pk>", views.TrialDetailView.as_view(), name="trial"),
    path("trials/<uuid:pk>/end", views.TrialEndView.as_view(), name="end_trial"),
    path(f"{PLAYBOOK}/deltas", views.PlaybookEditView.as_view(), name="deltas"),
]
