"""Staff edits starters and adds playbooks through the same services as people."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from core.errors import Conflict
from core.models import AuditEntry
from core.security.scopes import Principal
from playbooks.models import Playbook
from playbooks.services.rollback import rollback_playbook
from playbooks.starters.loader import edit_starter, load_starters
from tests.harness.admin_client import AdminClient, is_denied, refresh
from tests.harness.clients import logged_in_client
from tests.harness.rest_client import Rest


@pytest.fixture
def starter(db: None) -> Playbook:
    load_starters()
    return Playbook.objects.starters().get(starter_file="code_review")


def sent(page: Any) -> dict[str, Any]:
    """What the browser would send back of the page's form."""
    form, rows = page.context["form"], page.context["rows"]
    fields = {name: form.initial[name] for name in form.fields}
    fields |= {f"form-{name}": rows.management_form.initial[name] for name in MANAGED}
    for row in rows:
        fields |= {f"{row.prefix}-{name}": value for name, value in row.initial.items()}
    return fields


MANAGED = ("TOTAL_FORMS", "INITIAL_FORMS")


def save(desk: AdminClient, starter: Playbook, **changed: str) -> str:
    address = f"/admin/playbooks/playbook/{starter.pk}/edit/"
    fields = sent(desk.client.get(address))
    answer = desk.client.post(address, fields | changed, follow=True)
    return answer.content.decode()


def test_an_edit_is_the_next_version(desk: AdminClient, starter: Playbook) -> None:
    changed = {"form-0-content": "Say what could break.", "form-1-retire": "on"}
    page = save(desk, starter, name="Reviewing code", **changed)
    after = refresh(starter)
    assert "Reviewing code saved: version 2." in page
    assert (after.name, after.current_version.number) == ("Reviewing code", 2)
    assert after.current_version.diff_summary["updated"] == 1
    assert after.current_version.diff_summary["removed"] == 1


def test_a_new_bullet_goes_to_its_section(desk: AdminClient, starter: Playbook) -> None:
    last = starter.bullets.count() + 2
    new = {f"form-{last}-section": "others", f"form-{last}-content": "Thank the author."}
    save(desk, starter, **new)
    assert starter.bullets.get(content="Thank the author.").section.key == "others"


def test_a_release_does_not_change_an_edited_starter(desk: AdminClient, starter: Playbook) -> None:
    save(desk, starter, name="Ours", **{"form-0-content": "Say what could break."})
    assert load_starters() == 0
    assert Playbook.objects.starters().count() == 3
    desk.client.post(f"/admin/playbooks/playbook/{starter.pk}/follow/")
    assert refresh(starter).current_version.reason == "import"


def test_a_starter_is_rolled_back(desk: AdminClient, starter: Playbook) -> None:
    save(desk, starter, **{"form-0-content": "Say what could break."})
    desk.client.post(f"/admin/playbooks/playbook/{starter.pk}/roll-back/", {"to": "1"})
    after = refresh(starter).current_version
    assert (after.number, after.reason) == (3, "rollback")


def test_a_concurrent_edit_is_a_conflict(desk: AdminClient, starter: Playbook) -> None:
    page = save(desk, starter, version="7", **{"form-0-content": "Say what could break."})
    assert "The playbook is at version 1 now" in page
    assert not refresh(starter).starter_edited


def test_only_staff_edits_a_starter(
    owner: Client, starter: Playbook, alice: User, staff: User
) -> None:
    fields: dict[str, Any] = {"name": "x", "description": "", "operations": []}
    with pytest.raises(Conflict):
        edit_starter(playbook=starter, by=Principal.of(alice), expected_version=1, **fields)
    with pytest.raises(Conflict):
        rollback_playbook(playbook=starter, by=Principal.of(alice), number=1)


def test_staff_add_a_playbook_for_an_account(staff: User, alice: User, charlie: User) -> None:
    url = reverse("admin:playbooks_playbook_add")
    sent = {"owner": "Alice@example.org", "name": "Habits", "content": "- Read the log first."}
    for person in (alice, charlie):
        assert is_denied(logged_in_client(person), url)
    page = logged_in_client(staff)
    assert "No active account" in page.post(url, sent | {"owner": "x@y.org"}).content.decode()
    assert page.post(url, sent | {"content": "{"}).status_code == 400
    assert not Playbook.objects.filter(name="Habits").exists()
    assert page.post(url, sent)["Location"].endswith("/change/")
    made = Playbook.objects.get(name="Habits")
    version = made.current_version
    assert version is not None and (made.owner, version.author) == (alice, staff)
    entry = AuditEntry.objects.get(action="import_playbook", subject_id=str(made.pk))
    assert (entry.actor_id, entry.owner_id) == (staff.pk, alice.pk)
    assert Rest.of(charlie).get(f"/playbooks/{made.pk}").status_code == 404
