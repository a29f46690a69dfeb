"""Pages of bullets and versions: search, edits, undo; query counts do not grow with rows."""

from dataclasses import replace
from typing import Any

import pytest
from django.http import QueryDict
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from accounts.models import User
from core.security.scopes import Principal
from playbooks.document.operations import Operation
from playbooks.models import Playbook
from playbooks.services.editing import edit_playbook
from playbooks.services.settings import archive_playbook
from playbooks.web.bullet_list import BulletQuery, first_of_each_section
from tests.factories import make_outcome, make_playbook

LINE = "[str-{0:05d}] helpful={0} harmful=0 :: Case {0}: read what test {1} expects, then change."


def text_of(count: int) -> str:
    lines = (LINE.format(n, n * 31 % 97) for n in range(1, count + 1))
    return "## STRATEGIES & INSIGHTS\n" + "\n".join(lines)


def change(playbook: Playbook, by: User, text: str) -> None:
    operation = Operation("UPDATE", id="str-00001", content=text)
    edit_playbook(playbook=playbook, by=Principal.of(by), operations=[operation])


def page(client: Client, address: str) -> str:
    return client.get(address).content.decode()


def test_a_search_finds_every_word_in_text_or_id(owner: Client, playbook: Playbook) -> None:
    one = playbook.get_absolute_url()
    assert 'id="str-00002"' in page(owner, f"{one}?q=change+smallest")
    assert 'id="str-00001"' not in page(owner, f"{one}?q=change+smallest")
    assert 'id="mis-00003"' in page(owner, f"{one}?q=mis-00003")


def test_the_most_used_come_first_when_asked_for(owner: Client, alice: User) -> None:
    one = make_playbook(alice, text=text_of(9)).get_absolute_url()
    used = page(owner, f"{one}?sort=used")
    assert used.index('id="str-00009"') < used.index('id="str-00001"')
    assert page(owner, one).index('id="str-00001"') < page(owner, one).index('id="str-00009"')


def test_a_long_section_is_cut_and_shown_whole_on_pages_of_its_own(
    owner: Client, alice: User
) -> None:
    one = make_playbook(alice, text=text_of(130)).get_absolute_url()
    assert page(owner, one).count('class="bullet"') == 20
    section = f"{one}?section=strategies_and_insights"
    assert page(owner, section).count('class="bullet"') == 100
    assert page(owner, f"{section}&page=2").count('class="bullet"') == 30


@pytest.mark.parametrize("rest", ["", "/bullets/str-00001", "/versions", "/versions/2/diff"])
def test_a_page_makes_as_many_queries_for_many_rows_as_for_few(
    owner: Client, alice: User, django_assert_num_queries: DjangoAssertNumQueries, rest: str
) -> None:
    asked = {"": 8, "/bullets/str-00001": 9, "/versions": 7, "/versions/2/diff": 9}
    for count in (3, 150):
        playbook = make_playbook(alice, text=text_of(count))
        for number in range(count // 20 + 2):
            change(playbook, alice, f"Case 1, told for the {number}. time.")
        with django_assert_num_queries(asked[rest]):
            owner.get(f"{playbook.get_absolute_url()}{rest}")


def test_an_edit_in_place_answers_with_the_list_and_a_toast(
    owner: Client, playbook: Playbook
) -> None:
    sent = {"change": "UPDATE", "id": "str-00001", "revision": "1", "content": "Mine."}
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/?q=mine"}
    response = owner.post(f"{playbook.get_absolute_url()}/edit", sent, headers=headers)
    html = response.content.decode()
    assert html.lstrip().startswith('<div id="bullets"')
    assert 'hx-swap-oob="beforeend:#toasts"' in html
    assert f'action="{playbook.get_absolute_url()}/versions/2/undo"' in html
    assert 'id="str-00002"' not in html  # the search that was on the page still holds


def test_an_undo_can_be_undone_from_its_toast(owner: Client, alice: User) -> None:
    playbook = make_playbook(alice)
    change(playbook, alice, "Mine.")
    response = owner.post(f"{playbook.get_absolute_url()}/versions/2/undo", follow=True)
    html = response.content.decode()
    assert "Version 2 undone: created version 3." in html
    assert "/versions/3/undo" in html


def test_an_impossible_undo_is_refused_with_a_reason(owner: Client, playbook: Playbook) -> None:
    response = owner.post(f"{playbook.get_absolute_url()}/versions/1/undo")
    assert response.status_code == 409
    assert "changed no bullets that can be undone" in response.content.decode()


@pytest.mark.parametrize("rest", ["edit", "versions/1/undo", "versions/1/rollback"])
def test_neither_a_stranger_nor_staff_changes_anything(
    stranger: Client, admin_page: Client, playbook: Playbook, rest: str
) -> None:
    for client in (stranger, admin_page):
        sent = {"change": "REMOVE", "id": "str-00001"}
        assert client.post(f"{playbook.get_absolute_url()}/{rest}", sent).status_code == 404
    assert playbook.versions.count() == 1


@pytest.mark.parametrize(("against", "status"), [("abc", 400), ("-1", 400), ("99", 404)])
def test_a_wrong_version_to_compare_with_is_refused_and_not_ignored(
    owner: Client, playbook: Playbook, against: str, status: int
) -> None:
    address = f"{playbook.get_absolute_url()}/versions/1/diff?against={against}"
    assert owner.get(address).status_code == status


def test_a_conflict_without_javascript_shows_both_texts(owner: Client, alice: User) -> None:
    playbook = make_playbook(alice)
    change(playbook, alice, "Theirs.")
    sent = {"change": "UPDATE", "id": "str-00001", "revision": "1", "content": "Mine."}
    response = owner.post(f"{playbook.get_absolute_url()}/edit", sent)
    html = response.content.decode()
    assert response.status_code == 409
    assert "Theirs." in html
    assert ">Mine.</textarea>" in html


@pytest.mark.parametrize(
    ("name", "file"),
    [("json", "fixing-tests.json"), ("agents", "AGENTS.md"), ("skill", "fixing-tests.zip")],
)
def test_an_export_is_a_file(owner: Client, playbook: Playbook, name: str, file: str) -> None:
    response = owner.get(f"{playbook.get_absolute_url()}/export?format={name}")
    assert response["Content-Disposition"] == f'attachment; filename="{file}"'
    assert owner.get(f"{playbook.get_absolute_url()}/export?format=xml").status_code == 400


def listed(client: Client, query: str) -> list[Any]:
    return list(client.get(f"/playbooks?{query}").context["page"])


def test_the_list_is_searched_filtered_and_sorted_by_its_url(owner: Client, alice: User) -> None:
    first, second = make_playbook(alice, name="Alpha"), make_playbook(alice, name="Beta")
    make_outcome(first, alice, outcome="failure")
    make_outcome(second, alice)
    make_outcome(second, alice)
    assert listed(owner, "q=alp") == [first]
    assert listed(owner, "sort=name") == [first, second]
    assert listed(owner, "sort=success") == [second, first]
    assert listed(owner, "status=pending&sort=pending") == [second, first]
    assert listed(owner, "status=evolving") == []
    assert [row.success_rate for row in listed(owner, "sort=name")] == [0.0, 1.0]


def test_only_archived_playbooks_are_not_called_the_first_one(owner: Client, alice: User) -> None:
    assert "Your first playbook" in page(owner, "/playbooks")
    archive_playbook(playbook=make_playbook(alice), by=Principal.of(alice))
    html = page(owner, "/playbooks")
    assert "Your first playbook" not in html
    assert "You have 1 archived playbook." in html


def test_the_first_bullets_of_a_long_playbook_are_those_of_its_text(alice: User) -> None:
    """Of each section, moved and new ones among them; the same as numbering all rows finds."""
    lines = text_of(150).replace("[str-00100]", "\n## OTHERS\n[str-00100]")
    playbook = make_playbook(alice, text=lines)
    edits = [
        Operation("UPDATE", id="str-00003", section="misc"),
        Operation("REMOVE", id="str-00005"),
        Operation("ADD", section="str", content="The newest of all."),
    ]
    edit_playbook(playbook=playbook, by=Principal.of(alice), operations=edits)
    rows, query = playbook.bullets.active(), BulletQuery.of(QueryDict("show=active"))
    read = first_of_each_section(playbook, query, rows, 150)
    # A word that is in no filter here: only the other way is taken.
    numbered = first_of_each_section(playbook, replace(query, words="x"), rows, 150)
    shown = [bullet.public_id for bullet in read]
    assert shown == [bullet.public_id for bullet in numbered]
    assert len(shown) == 40
    assert {"str-00003", "str-00021", "str-00118"} <= set(shown)
    assert "ROW_NUMBER" in str(numbered.query)
    assert "ROW_NUMBER" not in str(read.query)
