"""Publishing of machine-made versions: base versions, races, guards, database constraints."""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import Mock
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, transaction

from accounts.models import User
from core.errors import Conflict
from core.security.scopes import Principal
from evolution.outcomes.cases import add_cases
from playbooks.document.imports import Import, read_import
from playbooks.document.operations import Operation
from playbooks.document.text import content_hash
from playbooks.models import Bullet, Delta, Playbook, Section, Version, Vote
from playbooks.review.decisions import decline_review_item
from playbooks.services import creation, editing, publishing
from playbooks.services.loading import lock_playbook
from playbooks.services.outcome_removal import remove_outcomes
from playbooks.services.publishing import (
    CollapseGuard,
    Judged,
    Publication,
    judge_deltas,
    publish_deltas,
)
from playbooks.services.settings import update_playbook
from tests.factories import ACE_TEXT, make_outcome, make_playbook, make_review_item, publish
from tests.harness.history import verify_playbook
from tests.harness.rest_client import Rest
from tests.playbooks.test_edit import edit, text_of

pytestmark = pytest.mark.postgres

OUTCOME = str(uuid4())
ADDS = ("Name the unit.", "Round last.", "Draw it.", "Ask why.", "Use a queue.")


def evolve(playbook: Playbook, *operations: Operation, **fields: Any) -> Publication:
    fields = {"job_id": uuid4(), "base": None, "max_adds": {"": 3}} | fields
    with transaction.atomic():
        row = Playbook.objects.select_for_update().get(pk=playbook.pk)
        return publish(row, operations=operations, reason="evolution", machine=True, **fields)


def vote(bullet_id: str, tag: str = "helpful", outcome: str = OUTCOME) -> Operation:
    return Operation("TAG", id=bullet_id, tag=tag, source="reflector", outcome_ids=(outcome,))


def test_an_evolution_is_a_version_of_its_job_without_author(playbook: Playbook) -> None:
    job_id = uuid4()
    version = evolve(playbook, vote("str-00001"), job_id=job_id).version
    assert version is not None
    assert (version.job_id, version.author, version.reason) == (job_id, None, "evolution")
    assert str(Vote.objects.get().outcome_id) == OUTCOME
    assert "[str-00001] helpful=3 harmful=0" in text_of(Playbook.objects.get(pk=playbook.pk))
    assert verify_playbook(playbook) == []


def test_a_persons_concurrent_edit_is_not_overwritten(playbook: Playbook) -> None:
    base = playbook.current_version
    edit(playbook, Operation("UPDATE", id="str-00001", content="A person wrote this."))
    edit(playbook, Operation("TAG", id="str-00002", tag="helpful"))
    publication = evolve(
        playbook,
        vote("str-00001"),
        Operation("UPDATE", id="str-00001", content="A machine wrote this."),
        Operation("UPDATE", id="str-00002", content="Change as little as you can."),
        base=base,
    )
    assert [(d.type, d.reason_code) for d in publication.deltas] == [
        *(("TAG", ""), ("UPDATE", "conflict"), ("UPDATE", "")),
    ]


def test_rejections_of_a_job_are_kept_without_a_version(playbook: Playbook) -> None:
    job_id = uuid4()
    publication = evolve(playbook, vote("str-77777"), job_id=job_id)
    assert publication.version is None
    assert Delta.objects.get(job_id=job_id).reason_code == "unknown_id"


def test_three_new_bullets_for_each_outcome_at_most(playbook: Playbook) -> None:
    adds = [Operation("ADD", content=text) for text in ADDS]
    codes = [d.reason_code for d in evolve(playbook, *adds).deltas]
    assert codes == ["", "", "", "too_many_adds", "too_many_adds"]


def test_a_collapse_is_refused_and_writes_nothing(alice: User) -> None:
    lines = [f"[misc-{n:05d}] helpful=0 harmful=9 :: Line {n}." for n in range(1, 11)]
    playbook = make_playbook(alice, text="\n".join(lines))
    removals = [Operation("REMOVE", id=f"misc-{n:05d}", reason="harm") for n in (1, 2, 3)]
    deltas = Delta.objects.count()
    with pytest.raises(CollapseGuard) as caught:
        evolve(playbook, *removals, vote("misc-00009"))
    assert caught.value.code == "collapse_guard"
    assert Delta.objects.count() == deltas
    assert not Vote.objects.exists()
    assert evolve(playbook, *removals[:2]).version


def test_over_budget_uses_decide_what_is_retired(alice: User) -> None:
    lines = [f"[misc-{n:05d}] helpful=0 harmful=4 :: {'word ' * 20}{n}." for n in range(1, 11)]
    playbook = make_playbook(alice, text="\n".join(lines))
    assert playbook.current_version is not None
    playbook.token_budget = playbook.current_version.token_count
    playbook.save()
    add = Operation("ADD", content="Another line that is short.")
    assert evolve(playbook, add, uses={}).deltas[0].reason_code == "held_full"
    assert playbook.review_items.get().state == "pending"
    deltas = evolve(playbook, add, uses={"misc-00004": 1}, job_id=uuid4()).deltas
    assert [(d.bullet_public_id, d.reason_code) for d in deltas] == [
        *(("misc-00004", "budget"), ("misc-00011", "")),
    ]
    assert playbook.review_items.get().state == "approved", "it waits no longer"


def test_one_job_makes_one_version(playbook: Playbook) -> None:
    job_id = uuid4()
    evolve(playbook, vote("str-00001"), job_id=job_id)
    with pytest.raises(Conflict):
        evolve(playbook, vote("str-00002"), job_id=job_id)
    assert playbook.versions.count() == 2
    assert Vote.objects.count() == 1


def test_a_lost_race_for_a_number_is_a_conflict_and_writes_nothing(
    playbook: Playbook,
) -> None:
    stale = Playbook.objects.select_related("current_version").get(pk=playbook.pk)
    edit(playbook, Operation("ADD", content="Faster."))
    rows = Delta.objects.count(), Bullet.objects.count()
    with transaction.atomic(), pytest.raises(Conflict):
        publish(
            stale,
            operations=[Operation("ADD", content="Too late.")],
            reason="edit",
            machine=False,
        )
    assert (Delta.objects.count(), Bullet.objects.count()) == rows


def meanwhile(monkeypatch: pytest.MonkeyPatch, *changes: Callable[[], Any]) -> list[bool]:
    """Each change is made after a judgement; whether each was made under the lock is returned."""
    real, before, locked = publishing.judge_deltas, len(connection.savepoint_ids), []
    left = iter(changes)

    def judge(**fields: Any) -> Judged:
        judged = real(**fields)
        locked.append(len(connection.savepoint_ids) > before)
        next(left, lambda: None)()
        return judged

    monkeypatch.setattr(editing, "judge_deltas", judge)
    return locked


def test_an_edit_is_judged_before_it_takes_the_lock(
    playbook: Playbook, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = meanwhile(monkeypatch)
    assert edit(playbook, Operation("ADD", content="Faster.")).version
    assert locked == [False]


def test_with_an_idempotency_key_too(
    playbook: Playbook, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An edit is judged, and an import read and judged, before the transaction of the key."""
    locked, before, read = meanwhile(monkeypatch), len(connection.savepoint_ids), read_import

    def reading(text: str) -> Import:
        locked.append(len(connection.savepoint_ids) > before)
        return read(text)

    monkeypatch.setattr(creation, "read_import", reading)
    rest, add = Rest.of(alice), {"type": "ADD", "section": "str", "content": "Faster."}
    for path, body in (
        (f"/playbooks/{playbook.pk}/deltas", {"operations": [add]}),
        ("/playbooks/import", {"name": "a", "content": ACE_TEXT}),
        ("/playbooks", {"name": "b", "content": ACE_TEXT}),
    ):
        answers = [rest.post(path, body, Idempotency_Key=path) for _ in range(2)]
        assert [a.status_code for a in answers] == [201, 201]
        assert answers[0].content == answers[1].content
    assert locked == [False] * 6


def test_what_changed_since_the_judgement_is_judged_again_under_the_lock(
    playbook: Playbook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def another(text: str) -> None:
        row = Playbook.objects.get(pk=playbook.pk)
        with transaction.atomic():
            publish(row, operations=[Operation("ADD", content=text)], reason="edit", machine=False)

    locked = meanwhile(monkeypatch, partial(another, ADDS[0]))
    made = edit(playbook, Operation("ADD", content=ADDS[0]), Operation("ADD", content="Faster."))
    assert locked == [False, True]
    assert [d.reason_code for d in made.deltas] == ["duplicate_of", ""]
    assert made.version is not None and made.version.number == 3
    assert verify_playbook(playbook) == []


@pytest.mark.parametrize("change", ["decline", "policy", "votes", "case"])
def test_no_judgement_outlives_what_it_rests_on(
    playbook: Playbook, alice: User, change: str
) -> None:
    """Neither a decision, a setting, a vote taken away nor a case comes too late."""
    item, by = make_review_item(playbook, "Read https://helper.example first."), Principal.of(alice)
    outcome = str(make_outcome(playbook, alice).pk)
    evolve(playbook, vote("str-00001", outcome=outcome))
    row = Playbook.objects.get(pk=playbook.pk)
    add = [Operation("ADD", content="Name the unit.")]
    judge = partial(judge_deltas, playbook=row, operations=add, reason="evolution", machine=True)
    judged = judge()
    fresh = Playbook.objects.get(pk=playbook.pk)
    if change == "decline":
        decline_review_item(item=item, by=by)
    elif change == "policy":
        update_playbook(playbook=fresh, by=by, review_policy="all")
    elif change == "votes":
        remove_outcomes(playbook=fresh, by=by, outcome_ids=[outcome])
    else:
        case = '{"question": "How many?", "target": "Forty-two"}'
        add_cases(playbook=fresh, by=by, content=case)
    again = Mock(side_effect=judge)
    with transaction.atomic():
        lock_playbook(row)
        publish_deltas(again, judged, playbook=row)
    assert again.call_count == 1


def test_texts_of_reasons_and_ids_fit_their_columns(playbook: Playbook) -> None:
    wild = Operation("ADD\x00" * 99, id="x\x00" * 99, reason="r\x00\ud800" * 9_999, content="c" * 9)
    delta = evolve(playbook, wild).deltas[0]
    delta.refresh_from_db()
    assert (delta.bullet_public_id, len(delta.reason)) == ("x" * 16, 1_000)


def test_votes_without_a_valid_outcome_id_are_votes_without_outcome(playbook: Playbook) -> None:
    evolve(playbook, vote("str-00001", outcome="not a uuid"))
    assert Vote.objects.get().outcome_id is None


def test_an_edit_takes_few_queries(playbook: Playbook, django_assert_max_num_queries: Any) -> None:
    operations = [Operation("ADD", content=text) for text in ADDS]
    with django_assert_max_num_queries(21) as sent:  # the last one seals the version
        edit(playbook, *operations, Operation("TAG", id="str-00001", tag="helpful"))
    # One CASE for each row and column: 200 changed bullets cost half a second under the lock.
    assert not any("CASE WHEN" in query["sql"] for query in sent.captured_queries)


def refused(row: Bullet | Section | Version | Vote | Delta | Playbook) -> bool:
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        return True
    return False


@pytest.mark.parametrize(
    "fields",
    [
        {"public_id": "str-00001"},
        {"content_hash": content_hash("Prefer the smallest change that makes the test pass.")},
        {"status": "merged"},
        {"base_helpful": 2, "helpful": 1},
        {"base_harmful": 2, "harmful": 1},
    ],
)
def test_a_bullet_that_breaks_a_rule_is_refused_by_the_database(
    playbook: Playbook, fields: dict[str, Any]
) -> None:
    section = playbook.sections.all()[0]
    row: dict[str, Any] = {"playbook": playbook, "section": section, "content": "x"}
    row |= {"public_id": "str-00009", "content_hash": "h"}
    assert refused(Bullet(**row | fields))
    assert refused(Bullet(**row, merged_into=playbook.bullets.all()[0]))
    assert not refused(Bullet(**row))


def test_numbers_keys_and_owners_are_held_by_the_database(alice: User, playbook: Playbook) -> None:
    version, section = Version.objects.get(), playbook.sections.all()[0]
    assert refused(Section(playbook=playbook, key=section.key, slug="zz", position=9))
    assert refused(Section(playbook=playbook, key="zz", slug=section.slug, position=9))
    assert refused(Version(playbook=playbook, number=1, bullet_count=0, token_count=0))
    assert refused(Delta(playbook=playbook, version=version, index=0, type="ADD"))
    assert refused(Playbook(name="Ownerless"))
    assert refused(Playbook(name="Owned starter", source="starter", owner=alice))


@pytest.mark.parametrize("outcome", [None, uuid4()])
def test_a_source_votes_once_for_an_outcome(playbook: Playbook, outcome: Any) -> None:
    bullet = playbook.bullets.get(public_id="str-00001")
    votes = [Vote(bullet=bullet, outcome_id=outcome, source="a", tag="helpful") for _ in "12"]
    assert [refused(row) for row in votes] == [False, True]
    assert not refused(Vote(bullet=bullet, outcome_id=outcome, source="b", tag="helpful"))


def test_another_playbook_may_have_the_same_texts(alice: User, playbook: Playbook) -> None:
    assert make_playbook(alice).bullets.count() == playbook.bullets.count()
    by = Principal.of(alice)
    assert creation.clone_playbook(playbook=playbook, by=by).bullets.count() == 3


def test_a_merge_is_one_bullet_updated_and_the_others_merged(playbook: Playbook) -> None:
    both = ("str-00001", "str-00002")
    merge = Operation("MERGE", id=both[0], ids=both, content="Read the test, change little.")
    version = edit(playbook, merge).version
    assert version is not None
    counts = {"added": 0, "updated": 1, "removed": 0, "merged": 1, "tagged": 0}
    assert version.diff_summary == counts
