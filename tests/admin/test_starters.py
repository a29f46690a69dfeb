"""Staff edits starters and adds playbooks through the same services as people."""

from typing import Any

import pytest
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


def save(desk: AdminClient, starter: Playbook, **changed: str) -> str:
    address = f"/admin/playbooks/playbook/{starter.pk}/edit/"
    form = desk.client.get(address).context["form"]
    answer = desk.client.post(address, form.initial | changed, follow=True)
    return answer.content.decode()


def text_of(starter: Playbook) -> str:
    version = refresh(starter).current_version
    assert version is not None
    return str(version.text)


def edited(starter: Playbook) -> str:
    """Its text with another first bullet."""
    first = starter.bullets.order_by("public_id")[0]
    return text_of(starter).replace(first.content, "Say what could break.")


def test_an_edit_is_the_next_version(desk: AdminClient, starter: Playbook) -> None:
    last = starter.bullets.order_by("public_id")[1].public_id
    lines = [line for line in edited(starter).splitlines() if f"[{last}]" not in line]
    page = save(desk, starter, name="Reviewing code", content="\n".join(lines))
    after = refresh(starter)
    assert "Reviewing code saved." in page
    assert (after.name, after.current_version.number) == ("Reviewing code", 2)
    counts = after.current_version.diff_summary
    assert {name: count for name, count in counts.items() if count} == {"updated": 1, "removed": 1}
    assert after.current_version.author.is_staff


def test_a_new_bullet_goes_to_its_section(desk: AdminClient, starter: Playbook) -> None:
    head = f"## {starter.sections.get(key='others').title}\n"
    text = text_of(starter) + ("" if head in text_of(starter) else f"\n{head}")
    new = text.replace(head, f"{head}[ctx-00999] helpful=0 harmful=0 :: Thank the author.\n")
    save(desk, starter, content=new)
    assert starter.bullets.get(content="Thank the author.").section.key == "others"


def test_a_text_that_is_no_playbook_is_refused(desk: AdminClient, starter: Playbook) -> None:
    assert "keeps its headings" in save(desk, starter, content="## OURS\n")
    assert refresh(starter).current_version.number == 1


def test_a_release_does_not_change_an_edited_starter(desk: AdminClient, starter: Playbook) -> None:
    save(desk, starter, name="Ours", content=edited(starter))
    assert load_starters() == 0
    assert Playbook.objects.starters().count() == 3
    assert (refresh(starter).name, refresh(starter).current_version.number) == ("Ours", 2)


def test_a_starter_is_rolled_back(desk: AdminClient, starter: Playbook) -> None:
    save(desk, starter, content=edited(starter))
    desk.act("roll_back", starter.versions.get(number=1), apply="Roll back")
    after = refresh(starter).current_version
    assert (after.number, after.reason) == (3, "rollback")


def test_a_concurrent_edit_is_a_conflict(desk: AdminClient, starter: Playbook) -> None:
    page = save(desk, starter, version="7", content=edited(starter))
    assert "The playbook is at version 1 now" in page
    assert not refresh(starter).starter_edited


def test_only_staff_edits_a_starter(starter: Playbook, alice: User) -> None:
    fields: dict[str, Any] = {"name": "x", "description": "", "content": "", "version": 1}
    with pytest.raises(Conflict):
        edit_starter(playbook=starter, by=Principal.of(alice), **fields)
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
