"""Create, import, export, clone, settings, archive."""

import pytest
from django.test import override_settings

from accounts.models import User
from core.errors import Forbidden, Invalid, TooLarge
from core.security.scopes import Principal
from playbooks.document.operations import Operation
from playbooks.document.sections import DEFAULT_SECTIONS, Section
from playbooks.models import Playbook, Version
from playbooks.services import creation
from playbooks.services.editing import edit_playbook
from playbooks.services.loading import sections_of
from playbooks.services.settings import archive_playbook, restore_playbook, update_playbook
from tests.factories import ACE_TEXT, make_playbook, text_of_playbook
from tests.harness.history import verify_playbook

pytestmark = pytest.mark.postgres

BAD_NAMES = ["", " \n\x00", "x" * 121]


def test_a_new_playbook_is_empty_at_version_1(alice: User) -> None:
    playbook = creation.create_playbook(by=Principal.of(alice), name=" My\n plan\x00 ")
    assert (playbook.name, playbook.owner) == ("My plan", alice)
    version = playbook.current_version
    assert version is not None
    assert (version.number, version.reason, version.bullet_count) == (1, "create", 0)
    assert sections_of(playbook) == DEFAULT_SECTIONS
    assert verify_playbook(playbook) == []


def test_a_playbook_may_have_its_own_sections(alice: User) -> None:
    sections = [Section("", "Money talk", ""), Section("law", "Law", "law")]
    playbook = creation.create_playbook(by=Principal.of(alice), name="x", sections=sections)
    assert [s.slug for s in sections_of(playbook)] == ["mone", "law", "misc"]
    add = Operation("ADD", section="law", content="Read it.")
    edit_playbook(playbook=playbook, by=Principal.of(alice), operations=[add])
    text = text_of_playbook(playbook)
    assert "## Law\n[law-00001] helpful=0 harmful=0 :: Read it.\n" in text
    assert verify_playbook(playbook) == []


@pytest.mark.parametrize(
    "sections",
    [
        [Section("", "", "x")],
        [Section("", "A", "X!")],
        [Section("", "Same", "aa"), Section("", "same", "bb")],
        [Section("", "One", "aa"), Section("", "Two", "aa")],
        [Section("", f"S{n}", "") for n in range(60)],
    ],
)
def test_ambiguous_sections_are_refused(alice: User, sections: list[Section]) -> None:
    with pytest.raises(Invalid) as caught:
        creation.create_playbook(by=Principal.of(alice), name="x", sections=sections)
    assert list(caught.value.fields) == ["sections"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_bad_name_creates_no_row(alice: User, name: str) -> None:
    with pytest.raises(Invalid) as caught:
        creation.create_playbook(by=Principal.of(alice), name=name)
    assert list(caught.value.fields) == ["name"]
    assert not Playbook.objects.exists()


def test_an_export_can_be_imported_unchanged(alice: User, playbook: Playbook) -> None:
    text = text_of_playbook(playbook)
    again = make_playbook(alice, text=text)
    assert text_of_playbook(again) == text
    assert again.source == Playbook.Source.IMPORTED
    assert verify_playbook(again) == []


def test_numbers_continue_after_the_highest_imported_one(alice: User) -> None:
    playbook = make_playbook(alice, text="## OTHERS\n[misc-00042] helpful=0 harmful=0 :: Hi.")
    add = Operation("ADD", section="str", content="Next.")
    edit = edit_playbook(playbook=playbook, by=Principal.of(alice), operations=[add])
    assert edit.deltas[0].bullet_public_id == "str-00043"


def test_an_import_has_one_add_for_each_bullet(playbook: Playbook) -> None:
    deltas = playbook.deltas.order_by("index")
    assert [d.type for d in deltas] == ["ADD"] * 3
    assert playbook.current_version is not None
    assert playbook.current_version.reason == Version.Reason.IMPORT
    assert playbook.current_version.diff_summary["added"] == 3


def test_repeated_texts_of_an_import_are_one_bullet_with_all_votes(alice: User) -> None:
    text = (
        "[misc-00001] helpful=2 harmful=0 :: Same words.\n"
        "[misc-00007] helpful=3 harmful=1 :: same  words\n"
    )
    playbook = make_playbook(alice, text=text)
    exported = text_of_playbook(playbook)
    assert "[misc-00001] helpful=5 harmful=1 :: Same words." in exported
    assert playbook.next_bullet_number == 8
    assert playbook.deltas.get(status="noop").reason_code == "duplicate_of"
    assert verify_playbook(playbook) == []


def test_an_invalid_text_is_refused_with_the_line(alice: User) -> None:
    with pytest.raises(Invalid, match="Line 8: ") as caught:
        make_playbook(alice, text=f"{ACE_TEXT}\nhello")
    assert list(caught.value.fields) == ["content"]
    assert not Playbook.objects.exists()


@override_settings(MAX_PLAYBOOK_BYTES=100)
def test_a_text_over_the_limit_is_too_large(alice: User) -> None:
    with pytest.raises(TooLarge):
        make_playbook(alice, text="# " + "ü" * 50)
    assert make_playbook(alice, text="# " + "ü" * 49).pk


def test_nul_and_lone_surrogates_do_not_reach_the_database(alice: User) -> None:
    text = "## A\x00\ud800b\n[misc-00001] helpful=0 harmful=0 :: x\x00\udfffy"
    playbook = make_playbook(alice, text=text)
    assert "## Ab\n[misc-00001] helpful=0 harmful=0 :: xy" in text_of_playbook(playbook)


def test_a_clone_has_the_bullets_and_its_own_history(playbook: Playbook, charlie: User) -> None:
    pin = Operation("PIN", id="mis-00003")
    owner = Principal.of(playbook.owner or charlie)
    edit_playbook(playbook=playbook, by=owner, operations=[pin])
    clone = creation.clone_playbook(playbook=playbook, by=Principal.of(charlie))
    assert (clone.owner, clone.name, clone.cloned_from) == (
        charlie,
        "Fixing tests (copy)",
        playbook,
    )
    assert text_of_playbook(clone) == text_of_playbook(playbook)
    assert clone.bullets.get(public_id="mis-00003").pinned
    assert clone.versions.count() == 1
    assert verify_playbook(clone) == []


def test_a_clone_never_reuses_a_number_of_its_original(alice: User, playbook: Playbook) -> None:
    by = Principal.of(alice)
    remove = Operation("REMOVE", id="mis-00003")
    edit_playbook(playbook=playbook, by=by, operations=[remove])
    clone = creation.clone_playbook(playbook=playbook, by=by, name="Mine")
    add = Operation("ADD", section="mis", content="Another.")
    edit = edit_playbook(playbook=clone, by=by, operations=[add])
    assert edit.deltas[0].bullet_public_id == "mis-00004"


def test_a_key_limited_to_some_playbooks_cannot_create_others(
    alice: User, playbook: Playbook
) -> None:
    limited = Principal(alice, Principal.of(alice).scopes, playbook_ids=frozenset({playbook.pk}))
    with pytest.raises(Forbidden):
        creation.create_playbook(by=limited, name="x")
    with pytest.raises(Forbidden):
        creation.import_playbook(by=limited, name="x", content=ACE_TEXT)
    with pytest.raises(Forbidden):
        creation.clone_playbook(playbook=playbook, by=limited)


def test_settings_change_one_at_a_time(alice: User, playbook: Playbook) -> None:
    by = Principal.of(alice)
    update_playbook(playbook=playbook, by=by, name="New", outcome_threshold=9)
    update_playbook(playbook=playbook, by=by, description="Why", token_budget=500)
    playbook.refresh_from_db()
    assert (playbook.name, playbook.description) == ("New", "Why")
    assert (playbook.outcome_threshold, playbook.token_budget) == (9, 500)
    update_playbook(playbook=playbook, by=by, outcome_threshold=None)
    playbook.refresh_from_db()
    assert playbook.outcome_threshold is None


def test_a_change_of_one_setting_keeps_a_concurrent_change_of_another(
    alice: User, playbook: Playbook
) -> None:
    by, older = Principal.of(alice), Playbook.objects.get(pk=playbook.pk)
    update_playbook(playbook=playbook, by=by, name="Renamed")
    update_playbook(playbook=older, by=by, token_budget=5_000)
    playbook.refresh_from_db()
    assert (playbook.name, playbook.token_budget) == ("Renamed", 5_000)


@pytest.mark.parametrize(
    "fields",
    [{"token_budget": 0}, {"outcome_threshold": -1}, {"time_threshold_hours": 9_999}]
    + [{"name": name} for name in BAD_NAMES]
    + [{"description": "x" * 1_001}],
)
def test_settings_out_of_range_change_nothing(
    alice: User, playbook: Playbook, fields: dict[str, int]
) -> None:
    with pytest.raises(Invalid) as caught:
        update_playbook(playbook=playbook, by=Principal.of(alice), **fields)  # type: ignore[arg-type] # any one
    assert list(caught.value.fields) == list(fields)
    playbook.refresh_from_db()
    assert playbook.token_budget == 16_000


def test_archiving_hides_and_restoring_brings_back(alice: User, playbook: Playbook) -> None:
    by = Principal.of(alice)
    archive_playbook(playbook=playbook, by=by)
    assert not Playbook.objects.active().filter(pk=playbook.pk).exists()
    restore_playbook(playbook=playbook, by=by)
    assert Playbook.objects.active().filter(pk=playbook.pk).exists()
