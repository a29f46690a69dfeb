"""Reading, serving tokens, diffs, counts."""

from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from core.errors import Invalid, NotFound
from core.security.scopes import Principal
from playbooks.document.operations import Operation
from playbooks.models import Playbook
from playbooks.services import creation, reading
from playbooks.services.loading import document_of, version_of
from playbooks.services.reading import (
    diff_versions,
    find_playbook,
    rank_playbooks,
    read_playbook,
)
from playbooks.services.serving_tokens import read_serving_token, sign_serving_token
from playbooks.starters.loader import load_starters
from tests.factories import make_key, make_outcome, make_playbook
from tests.playbooks.test_edit import edit
from tests.playbooks.test_publishing import evolve


def test_a_reading_is_the_agent_view_without_counters(alice: User, playbook: Playbook) -> None:
    reading = read_playbook(playbook=playbook, by=Principal.of(alice))
    assert "[str-00001] Read the failing test before the code.\n" in reading.content
    assert "helpful=" not in reading.content
    assert (reading.version, reading.name) == (1, "Fixing tests")


def test_a_section_without_bullets_is_not_sent(alice: User, playbook: Playbook) -> None:
    content = read_playbook(playbook=playbook, by=Principal.of(alice)).content
    assert content.count("## ") == 2
    assert content.endswith("\n")
    assert not content.endswith("\n\n")
    empty = make_playbook(alice, name="Empty", text="## STRATEGIES & INSIGHTS\n")
    assert read_playbook(playbook=empty, by=Principal.of(alice)).content == ""


def test_reading_writes_nothing_and_takes_one_query(
    alice: User, playbook: Playbook, django_assert_num_queries: Any
) -> None:
    row = Playbook.objects.get(pk=playbook.pk)
    with django_assert_num_queries(1) as queries:
        read_playbook(playbook=row, by=Principal.of(alice))
    assert queries.captured_queries[0]["sql"].startswith("SELECT")


def test_votes_do_not_change_what_agents_read(alice: User, playbook: Playbook) -> None:
    by = Principal.of(alice)
    before = read_playbook(playbook=playbook, by=by).content
    edit(playbook, Operation("TAG", id="str-00001", tag="harmful"))
    assert read_playbook(playbook=playbook, by=by).content == before
    hashes = playbook.versions.values_list("text_hash", flat=True).distinct()
    assert len(set(hashes)) == 1


def test_an_old_version_can_be_read(alice: User, playbook: Playbook) -> None:
    edit(playbook, Operation("REMOVE", id="str-00001"))
    by = Principal.of(alice)
    assert "str-00001" not in read_playbook(playbook=playbook, by=by).content
    old = read_playbook(playbook=playbook, by=by, version=1)
    assert (old.version, "str-00001" in old.content) == (1, True)
    with pytest.raises(NotFound):
        read_playbook(playbook=playbook, by=by, version=3)


@pytest.mark.parametrize("name", ["mis", "common_mistakes_to_avoid", "Common mistakes to avoid"])
def test_a_section_is_read_by_key_slug_or_title(alice: User, playbook: Playbook, name: str) -> None:
    by = Principal.of(alice)
    reading = read_playbook(playbook=playbook, by=by, section=name)
    assert reading.content == (
        "## COMMON MISTAKES TO AVOID\n[mis-00003] Do not silence a warning; find what causes it.\n"
    )


def test_an_unknown_section_is_answered_with_the_known_ones(
    alice: User, playbook: Playbook
) -> None:
    with pytest.raises(Invalid, match="`heur`") as caught:
        read_playbook(playbook=playbook, by=Principal.of(alice), section="nowhere")
    assert list(caught.value.fields) == ["section"]


def test_a_limit_of_tokens_keeps_the_useful_bullets_and_says_what_is_missing(
    alice: User, playbook: Playbook
) -> None:
    by = Principal.of(alice)
    reading = read_playbook(playbook=playbook, by=by, max_tokens=30)
    assert reading.content.splitlines()[1:] == [
        "[str-00001] Read the failing test before the code."
    ]
    assert [(part.section, part.bullets) for part in reading.left_out] == [
        ("STRATEGIES & INSIGHTS", 1),
        ("COMMON MISTAKES TO AVOID", 1),
    ]
    whole = read_playbook(playbook=playbook, by=by, max_tokens=10_000)
    assert whole.content == read_playbook(playbook=playbook, by=by).content
    assert whole.left_out == ()


def test_a_corrected_bullet_is_read_and_judged_by_the_votes_of_its_new_wording(
    alice: User,
) -> None:
    blamed = "[misc-00001] helpful=0 harmful=9 :: Round every intermediate sum up.\n"
    blamed += "[misc-00002] helpful=0 harmful=0 :: Ask which currency is meant."
    playbook, by = make_playbook(alice, text=blamed), Principal.of(alice)
    assert "[misc-00001]" not in read_playbook(playbook=playbook, by=by, max_tokens=20).content
    evolve(playbook, Operation("UPDATE", id="misc-00001", content="Never round sums up."))
    playbook = Playbook.objects.get(pk=playbook.pk)
    assert "[misc-00001]" in read_playbook(playbook=playbook, by=by, max_tokens=20).content
    remove = Operation("REMOVE", id="misc-00001", reason="Blamed nine times, before.")
    assert evolve(playbook, remove).deltas[0].reason_code == "too_little_evidence"


def test_a_limit_counts_within_a_section_only(alice: User, playbook: Playbook) -> None:
    by = Principal.of(alice)
    reading = read_playbook(playbook=playbook, by=by, section="str", max_tokens=30)
    assert "[str-00001]" in reading.content
    assert [(part.section, part.bullets) for part in reading.left_out] == [
        ("STRATEGIES & INSIGHTS", 1)
    ]
    with pytest.raises(Invalid):
        read_playbook(playbook=playbook, by=by, max_tokens=0)


def test_a_name_finds_the_users_own_playbook_before_a_starter(alice: User, charlie: User) -> None:
    load_starters()
    starter = Playbook.objects.starters()[0]
    by = Principal.of(alice)
    assert find_playbook(by=by, name=f" {starter.name.upper()} ") == starter
    make_playbook(charlie, name=starter.name)
    copy = creation.clone_playbook(playbook=starter, by=by)
    assert find_playbook(by=by, name=starter.name) == copy


def test_an_ambiguous_name_is_refused_with_the_ids(alice: User, playbook: Playbook) -> None:
    other = make_playbook(alice)
    with pytest.raises(Invalid, match=str(other.pk)) as caught:
        find_playbook(by=Principal.of(alice), name="fixing tests")
    assert (caught.value.code, str(playbook.pk) in caught.value.message) == ("ambiguous_name", True)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL plans by its figures")
def test_a_name_is_looked_up_in_an_index(alice: User, playbook: Playbook) -> None:
    with CaptureQueriesContext(connection) as asked, connection.cursor() as cursor:
        assert find_playbook(by=Principal.of(alice), name=playbook.name.swapcase()) == playbook
        plan = cursor.execute(f"EXPLAIN QUERY PLAN {asked[0]['sql']}").fetchall()
    assert any("INDEX playbook_named" in row[-1] for row in plan), plan


def test_a_strangers_name_is_like_an_unknown_one(charlie: User, playbook: Playbook) -> None:
    by = Principal.of(charlie)
    texts = []
    for name in (playbook.name, "nothing", "", "a\0b"):
        with pytest.raises(NotFound) as caught:
            find_playbook(by=by, name=name)
        texts.append(caught.value.message)
    assert set(texts) == {"No playbook found with this name. List yours to find its name."}


def test_search_words_narrow_the_list(alice: User, playbook: Playbook) -> None:
    other = creation.create_playbook(by=Principal.of(alice), name="Deploys", description="Roll out")
    rows = Playbook.objects.for_user(alice)
    assert [*rows.matching("TESTS fix")] == [playbook]
    assert [*rows.matching("out")] == [other]
    assert [*rows.matching("tests out")] == []
    assert rows.matching(" ").count() == rows.matching("%").count() + 2 == 2


def test_a_serving_names_the_version_that_was_read(alice: User, playbook: Playbook) -> None:
    key, _ = make_key(alice)
    by = Principal(alice, Principal.of(alice).scopes, api_key=key)
    serving = read_playbook(playbook=playbook, by=by).serving_id
    edit(playbook, Operation("PIN", id="str-00001"))
    read = read_serving_token(serving, playbook=playbook, principal=Principal.of(alice))
    assert read.version.number == 1


def test_a_serving_is_refused_for_another_playbook_or_user(
    alice: User, charlie: User, playbook: Playbook
) -> None:
    version = playbook.current_version
    assert version is not None
    serving = sign_serving_token(version=version, principal=Principal.of(alice))
    other = make_playbook(alice, name="Other")
    for row, user in ((other, alice), (playbook, charlie)):
        with pytest.raises(Invalid) as caught:
            read_serving_token(serving, playbook=row, principal=Principal.of(user))
        assert list(caught.value.fields) == ["serving_id"]


@pytest.mark.parametrize(
    "wrong", ["", "x", "a:b:c", "é\x00", "\ud800", "x" * 10_000, "{0}x", "x{0}", "{0}:"]
)
def test_a_forged_serving_is_refused(alice: User, playbook: Playbook, wrong: str) -> None:
    version = playbook.current_version
    assert version is not None
    by = Principal.of(alice)
    token = wrong.replace("{0}", sign_serving_token(version=version, principal=by))
    with pytest.raises(Invalid):
        read_serving_token(token, playbook=playbook, principal=by)


def test_a_diff_lists_what_a_version_changed(playbook: Playbook) -> None:
    edit(
        playbook,
        Operation("ADD", content="New."),
        Operation("REMOVE", id="mis-00003"),
        Operation("UPDATE", id="str-00001", content="Read the test first.", section="heur"),
        Operation("TAG", id="str-00002", tag="helpful"),
    )
    diff = diff_versions(playbook=playbook, number=2, against=1)
    assert [b.id for b in diff.added] == ["misc-00004"]
    assert [b.id for b in diff.removed] == ["mis-00003"]
    assert [c.id for c in diff.changed] == [c.id for c in diff.moved] == ["str-00001"]
    assert [c.id for c in diff.counted] == ["str-00002"]
    back = diff_versions(playbook=playbook, number=1, against=2)
    assert (back.added, back.removed) == (diff.removed, diff.added)
    assert diff_versions(playbook=playbook, number=2, against=2).is_empty
    with pytest.raises(NotFound):
        diff_versions(playbook=playbook, number=2, against=9)


def test_ranking_reads_no_more_playbooks_than_it_ranks(alice: User, playbook: Playbook) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert rank_playbooks(Playbook.objects.for_user(alice), "nothing") == [playbook]
    assert "LIMIT 200" in queries[0]["sql"]


def test_with_counts_adds_the_counts(alice: User, playbook: Playbook) -> None:
    make_playbook(alice, name="Other")
    outcomes = [make_outcome(playbook, alice) for _ in range(3)]
    playbook.outcomes.filter(pk=outcomes[0].pk).update(set_aside_reason="bad")
    rows = Playbook.objects.with_counts().order_by("name")
    names = ("bullet_count", "outcome_count", "pending_outcomes")
    assert [[getattr(row, name) for name in names] for row in rows] == [[3, 3, 2], [3, 0, 0]]


def test_excerpts_for_many_tasks_parse_a_version_once(alice: User, playbook: Playbook) -> None:
    """With 1,000 bullets each task cost 16 ms; a new version is parsed anew."""

    def read(task: str) -> str:
        by = Principal.of(alice)
        return read_playbook(playbook=playbook, by=by, max_tokens=30, task=task).content

    reading._index.cache_clear()
    with patch.object(reading, "document_of", wraps=document_of) as parse:
        assert "[str-00001]" in read("read the failing test")
        assert "[str-00002]" in read("the smallest change")
        assert parse.call_count == 1
        edit(playbook, Operation("UPDATE", id="str-00002", content="Small changes, always."))
        assert "Small changes" in read("the smallest change")
        assert parse.call_count == 2


def test_an_old_version_is_found_by_its_index(playbook: Playbook) -> None:
    """With LIMIT PostgreSQL reads the table where every playbook has a version of this number."""
    with CaptureQueriesContext(connection) as captured:
        assert version_of(playbook, 1).number == 1
    (query,) = captured
    assert "LIMIT" not in query["sql"]
