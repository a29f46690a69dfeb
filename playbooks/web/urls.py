"""Pages of playbooks."""

from django.urls import URLPattern, path

from playbooks.web.views import bullets, playbooks, versions

PLAYBOOK = "playbooks/<uuid:pk>"
VERSION = f"{PLAYBOOK}/versions/<int:number>"
urlpatterns: list[URLPattern] = [
    path("playbooks", playbooks.list_playbooks, name="list"),
    path("playbooks/new", playbooks.create, name="create"),
    path("playbooks/import", playbooks.import_text, name="import"),
    path(PLAYBOOK, bullets.detail, name="detail"),
    path(f"{PLAYBOOK}/edit", bullets.edit, name="edit"),
    path(f"{PLAYBOOK}/bullets/<str:bullet>", bullets.bullet, name="bullet"),
    path(f"{PLAYBOOK}/bullets/<str:bullet>/edit", bullets.editor, name="editor"),
    path(f"{PLAYBOOK}/settings", playbooks.settings, name="settings"),
    path(f"{PLAYBOOK}/clone", playbooks.clone, name="clone"),
    path(f"{PLAYBOOK}/archive", playbooks.archive, name="archive"),
    path(f"{PLAYBOOK}/restore", playbooks.restore, name="restore"),
    path(f"{PLAYBOOK}/export", playbooks.export, name="export"),
    path(f"{PLAYBOOK}/versions", versions.versions, name="versions"),
    path(VERSION, versions.version, name="version"),
    path(f"{VERSION}/diff", versions.diff, name="diff"),
    path(f"{VERSION}/rollback", versions.rollback, name="rollback"),
    path(f"{VERSION}/undo", versions.undo, name="undo"),
]
