"""The table of this app's doors: pages and REST."""

from django.urls import URLPattern, path

from playbooks.api import contents as inside
from playbooks.api import held
from playbooks.api import playbooks as whole
from playbooks.views import bullets, files, palette, versions
from playbooks.views import lists as views
from playbooks.views import reviews as review_pages

ONE = "playbooks/<uuid:pk>"
pages: list[URLPattern] = [
    path("playbooks", views.list_playbooks, name="list"),
    path("playbooks/new", views.create, name="create"),
    path("playbooks/import", files.import_text, name="import"),
    path("starters", views.starters, name="starters"),
    path("go", palette.go, name="go"),
    path(ONE, bullets.detail, name="detail"),
    path(f"{ONE}/edit", bullets.edit, name="edit"),
    path(f"{ONE}/bullets/<str:bullet>", bullets.bullet, name="bullet"),
    path(f"{ONE}/bullets/<str:bullet>/edit", bullets.editor, name="editor"),
    path(f"{ONE}/settings", views.settings, name="settings"),
    path(f"{ONE}/clone", views.clone, name="clone"),
    path(f"{ONE}/archive", views.archive, name="archive"),
    path(f"{ONE}/restore", views.restore, name="restore"),
    path(f"{ONE}/export", files.export, name="export"),
    path(f"{ONE}/versions", versions.versions, name="versions"),
    path(f"{ONE}/compare", versions.compare, name="compare"),
    path(f"{ONE}/versions/<int:number>", versions.version, name="version"),
    path(f"{ONE}/versions/<int:number>/diff", versions.diff, name="diff"),
    path(f"{ONE}/versions/<int:number>/rollback", versions.rollback, name="rollback"),
    path(f"{ONE}/versions/<int:number>/undo", versions.undo, name="undo"),
    path(f"{ONE}/reviews", review_pages.reviews, name="reviews"),
    path(f"{ONE}/reviews/<uuid:held>", review_pages.review, name="review"),
]
NUMBER = f"{ONE}/versions/<int:number>"
HELD = f"{ONE}/held-texts/<uuid:held>"
api: list[URLPattern] = [
    path("playbooks", whole.PlaybooksDoor.as_view(), name="list"),
    path("playbooks/import", whole.ImportDoor.as_view(), name="import"),
    path(ONE, whole.PlaybookDoor.as_view(), name="detail"),
    path(f"{ONE}/clone", whole.CloneDoor.as_view(), name="clone"),
    path(f"{ONE}/export", whole.ExportDoor.as_view(), name="export"),
    path(f"{ONE}/versions", inside.VersionsDoor.as_view(), name="versions"),
    path(NUMBER, inside.VersionDoor.as_view(), name="version"),
    path(f"{NUMBER}/diff", inside.DiffDoor.as_view(), name="diff"),
    path(f"{NUMBER}/rollback", inside.RollbackDoor.as_view(), name="rollback"),
    path(f"{NUMBER}/undo", inside.UndoDoor.as_view(), name="undo"),
    path(f"{ONE}/sections", inside.SectionsDoor.as_view(), name="sections"),
    path(f"{ONE}/bullets", inside.BulletsDoor.as_view(), name="bullets"),
    path(f"{ONE}/bullets/<str:bullet>/history", inside.BulletHistoryDoor.as_view(), name="history"),
    path(f"{ONE}/held-texts", held.HeldTextsDoor.as_view(), name="held_texts"),
    path(f"{HELD}/approve", held.ApproveDoor.as_view(), name="approve_held_text"),
    path(f"{HELD}/decline", held.DeclineDoor.as_view(), name="decline_held_text"),
    path(f"{ONE}/deltas", inside.DeltasDoor.as_view(), name="deltas"),
]
