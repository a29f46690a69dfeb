"""Pages of playbooks: create, import, export, edit, settings, clone, roll back."""

import re

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from core.security.scopes import Principal
from playbooks.document.operations import Operation
from playbooks.models import Playbook
from playbooks.services.editing import edit_playbook
from playbooks.starters.loader import load_starters
from tests.factories import ACE_TEXT, make_playbook
from tests.harness.sample_account import LONG


def edit(owner: Client, playbook: Playbook, **change: object) -> int:
    return owner.post(f"{playbook.get_absolute_url()}/edit", change).status_code


def test_a_playbook_is_created(owner: Client) -> None:
    response = owner.post("/playbooks/new", {"name": "Fixing tests"})
    assert response["Location"] == Playbook.objects.get().get_absolute_url()


def test_a_text_is_imported(owner: Client) -> None:
    owner.post("/playbooks/import", {"name": "Fixing tests", "content": ACE_TEXT})
    assert Playbook.objects.get().bullets.count() == 3


def test_a_file_is_imported(owner: Client) -> None:
    file = SimpleUploadedFile("playbook.md", ACE_TEXT.encode())
    owner.post("/playbooks/import", {"name": "Fixing tests", "file": file})
    assert Playbook.objects.get().bullets.count() == 3


def test_a_file_that_is_not_text_is_an_error_on_its_field(owner: Client) -> None:
    file = SimpleUploadedFile("playbook.md", b"\xff\xfe\x00")
    response = owner.post("/playbooks/import", {"name": "Fixing tests", "file": file})
    assert response.status_code == 422
    assert "neither UTF-8 text" in response.content.decode()


def test_a_bad_line_is_named_and_the_text_is_kept(owner: Client) -> None:
    sent = {"name": "Fixing tests", "content": f"{ACE_TEXT}\nnonsense"}
    response = owner.post("/playbooks/import", sent)
    assert response.status_code == 422
    assert "Line 8" in response.content.decode()
    assert "nonsense" in response.content.decode()


def test_the_export_is_the_text(owner: Client, playbook: Playbook) -> None:
    response = owner.get(f"{playbook.get_absolute_url()}/export")
    assert "[str-00001] helpful=2 harmful=0 ::" in response.content.decode()
    assert response["Content-Disposition"] == 'attachment; filename="fixing-tests.ace.md"'


def test_a_bullet_is_added_changed_retired_and_restored(owner: Client, playbook: Playbook) -> None:
    assert edit(owner, playbook, change="ADD", section="others", content="Be kind.") == 302
    assert edit(owner, playbook, change="UPDATE", id="misc-00004", content="Be brief.") == 302
    assert edit(owner, playbook, change="REMOVE", id="misc-00004") == 302
    assert edit(owner, playbook, change="RESTORE", id="misc-00004") == 302
    bullet = playbook.bullets.get(public_id="misc-00004")
    assert (bullet.content, bullet.status) == ("Be brief.", "active")
    assert playbook.versions.count() == 5


def test_an_update_of_a_changed_text_is_a_conflict(owner: Client, playbook: Playbook) -> None:
    by = Principal.of(playbook.owner)  # type: ignore[arg-type]  # no starter: it has an owner
    operation = Operation("UPDATE", id="str-00001", content="Theirs.")
    edit_playbook(playbook=playbook, by=by, operations=[operation])
    sent = {"change": "UPDATE", "id": "str-00001", "revision": "1", "content": "Mine."}
    response = owner.post(f"{playbook.get_absolute_url()}/edit", sent)
    assert response.status_code == 409
    page = response.content.decode()
    assert "Theirs." in page
    assert "Mine." in page


def test_a_duplicate_is_refused_with_the_reason(owner: Client, playbook: Playbook) -> None:
    text = "Read the failing test before the code."
    sent = {"change": "ADD", "section": "others", "content": text}
    response = owner.post(f"{playbook.get_absolute_url()}/edit", sent)
    assert response.status_code == 422
    assert "This advice already exists." in response.content.decode()


def test_settings_are_saved(owner: Client, playbook: Playbook) -> None:
    sent = {"name": "Better", "token_budget": "900", "outcome_threshold": "3"}
    sent |= {"review_policy": "risky", "trial_policy": "tell"}
    owner.post(f"{playbook.get_absolute_url()}/settings", sent)
    playbook.refresh_from_db()
    assert (playbook.name, playbook.token_budget, playbook.outcome_threshold) == ("Better", 900, 3)
    assert (playbook.time_threshold_hours, playbook.trial_policy) == (None, "tell")


def test_archiving_hides_and_restoring_shows(owner: Client, playbook: Playbook) -> None:
    owner.post(f"{playbook.get_absolute_url()}/archive")
    assert playbook.name not in owner.get("/playbooks?status=active").context["page"]
    assert owner.get("/playbooks?status=archived").context["page"][0] == playbook
    owner.post(f"{playbook.get_absolute_url()}/restore")
    assert owner.get("/playbooks").context["page"][0] == playbook


def test_a_starter_is_cloned_and_cannot_be_changed(owner: Client, alice: User) -> None:
    load_starters()
    starter = Playbook.objects.starters()[0]
    assert edit(owner, starter, change="ADD", content="Mine.") == 404
    response = owner.post(f"{starter.get_absolute_url()}/clone")
    assert response["Location"] == alice.playbooks.get().get_absolute_url()


def test_every_link_of_a_starters_pages_leads_somewhere(owner: Client, admin_page: Client) -> None:
    load_starters()
    one = Playbook.objects.starters()[0].get_absolute_url()
    for browser in (owner, admin_page):
        pages = (browser.get(page).content.decode() for page in (one, f"{one}/bullets/str-00001"))
        links = {link for page in pages for link in re.findall(r'href="(/playbooks/[^"#?]*)', page)}
        assert f"{one}/bullets/str-00001" in links
        assert {link: browser.get(link).status_code for link in links} == dict.fromkeys(links, 200)


def test_a_rollback_shows_what_would_change_and_then_does(owner: Client, alice: User) -> None:
    playbook = make_playbook(alice)
    edit(owner, playbook, change="ADD", section="others", content="Be kind.")
    address = f"{playbook.get_absolute_url()}/versions/1/rollback"
    assert "<del>Be kind.</del>" in owner.get(address).content.decode()
    owner.post(address)
    assert playbook.versions.latest("number").reason == "rollback"


def test_a_diff_marks_words(owner: Client, playbook: Playbook) -> None:
    text = "Prefer the smallest change that makes the tests pass."
    edit(owner, playbook, change="UPDATE", id="str-00002", content=text)
    page = owner.get(f"{playbook.get_absolute_url()}/versions/2/diff").content.decode()
    assert " <del>test</del> <ins>tests</ins>" in page


def test_an_unknown_version_is_not_found(owner: Client, playbook: Playbook) -> None:
    one = playbook.get_absolute_url()
    for rest in ("99", "99/diff", "1/diff?against=99", "99/rollback"):
        assert owner.get(f"{one}/versions/{rest}").status_code == 404


def test_markup_in_a_bullet_stays_text(owner: Client, playbook: Playbook) -> None:
    edit(owner, playbook, change="ADD", section="others", content="<b onclick=x>bold</b>")
    page = owner.get(playbook.get_absolute_url()).content.decode()
    assert "&lt;b onclick=x&gt;bold&lt;/b&gt;" in page


def test_an_import_is_previewed_line_by_line(owner: Client) -> None:
    text = "# House <b>rules</b>\n\n- Tag each release.\n| a |\n"
    shown = owner.post("/playbooks/import", {"content": text, "preview": ""})
    html = shown.content.decode()
    assert (shown.status_code, Playbook.objects.count()) == (200, 0)
    assert "Preview: 1 bullet from Markdown, “House &lt;b&gt;rules&lt;/b&gt;”" in html
    assert "Tables are not imported." in html
    file = SimpleUploadedFile("AGENTS.md", text.encode())
    shown = owner.post("/playbooks/import", {"file": file, "preview": ""})
    assert "- Tag each release." in shown.content.decode(), "the text is in the field"
    owner.post("/playbooks/import", {"content": text})
    assert Playbook.objects.get().bullets.get().content == "Tag each release."
    assert owner.post("/playbooks/import", {"content": "", "preview": ""}).status_code == 422


def test_the_list_makes_as_many_queries_for_many_as_for_one(
    owner: Client, alice: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        make_playbook(alice, name=f"{number} {LONG}"[:120])
    with django_assert_num_queries(7):  # session, user, inbox, archived, count, rows, trends
        owner.get("/playbooks")
