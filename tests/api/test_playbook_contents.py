"""The contents of a playbook over REST: edits, versions, diffs, sections, bullets."""

from typing import Any

import pytest

from accounts.models import User
from evolution.worker.tasks import run_evolution
from playbooks.models import Bullet, Playbook, Version
from playbooks.starters.loader import load_starters
from tests.harness.rest_client import Rest

ADD = {"type": "ADD", "section": "str", "content": "Write the failing test first."}
UPDATE = {"type": "UPDATE", "id": "str-00001", "content": "Read the failing test, then the code."}


@pytest.fixture
def rest(alice: User) -> Rest:
    return Rest.of(alice)


@pytest.fixture
def path(playbook: Playbook) -> str:
    return f"/playbooks/{playbook.pk}"


def edit(rest: Rest, path: str, *operations: dict[str, Any], **more: Any) -> Any:
    return rest.post(f"{path}/deltas", {"operations": list(operations), **more})


def test_accepted_operations_make_a_version_and_each_has_a_result(rest: Rest, path: str) -> None:
    wrong = {"type": "REMOVE", "id": "str-09999", "reason": "gone"}
    answer = edit(rest, path, ADD, wrong)
    assert answer.status_code == 201
    body = answer.json()
    assert body["version"] == 2
    assert [(r["type"], r["status"]) for r in body["results"]] == [
        ("REMOVE", "rejected"),
        ("ADD", "applied"),
    ]
    assert body["results"][0]["reason_code"]


def test_operations_that_all_fail_make_no_version(rest: Rest, path: str) -> None:
    answer = edit(rest, path, {"type": "FOO"})
    assert (answer.status_code, answer.json()["version"]) == (200, None)
    assert Version.objects.count() == 1


def test_an_edit_of_another_version_is_a_conflict(rest: Rest, path: str) -> None:
    assert edit(rest, path, ADD, expected_version=1).status_code == 201
    assert edit(rest, path, UPDATE, expected_version=1).status_code == 409
    assert edit(rest, path, UPDATE, expected_version=2).status_code == 201


@pytest.mark.parametrize("count", [0, 201])
def test_zero_or_too_many_operations_are_refused(rest: Rest, path: str, count: int) -> None:
    assert edit(rest, path, *[ADD] * count).status_code == 400


def test_too_much_text_in_one_edit_is_rejected_unread(rest: Rest, path: str) -> None:
    long = [ADD | {"content": f"{number} {'word ' * 390}"} for number in range(25)]
    answer = edit(rest, path, *long)
    assert answer.status_code == 400
    assert "40,000 characters in one edit" in answer.content.decode()
    assert Version.objects.count() == 1


def test_a_source_cannot_be_claimed(rest: Rest, path: str, alice: User) -> None:
    vote = {"type": "TAG", "id": "str-00001", "tag": "helpful", "source": "reflector"}
    assert edit(rest, path, vote).status_code == 201
    bullet = Bullet.objects.get(public_id="str-00001")
    assert [v.source for v in bullet.votes.all()] == [f"user:{alice.pk}"]


def test_versions_are_listed_newest_first_and_read_with_their_deltas(rest: Rest, path: str) -> None:
    edit(rest, path, ADD)
    listed = rest.get(f"{path}/versions").json()["results"]
    assert [(v["version"], v["parent"], v["reason"]) for v in listed] == [
        (2, 1, "edit"),
        (1, None, "import"),
    ]
    version = rest.get(f"{path}/versions/2").json()
    assert ADD["content"] in version["content"]
    assert [delta["bullet_id"] for delta in version["deltas"]] == ["str-00004"]


def test_a_diff_shows_what_was_added_and_changed(rest: Rest, path: str) -> None:
    edit(rest, path, ADD, UPDATE)
    diff = rest.get(f"{path}/versions/2/diff").json()
    assert (diff["version"], diff["against"]) == (2, 1)
    assert [bullet["content"] for bullet in diff["added"]] == [ADD["content"]]
    (change,) = diff["changed"]
    assert change["id"] == "str-00001"
    assert {mark["kind"] for mark in change["marks"]} == {"same", "removed", "added"}


def test_a_diff_against_a_later_version_is_reversed(rest: Rest, path: str) -> None:
    edit(rest, path, ADD)
    diff = rest.get(f"{path}/versions/1/diff?against=2").json()
    assert [bullet["content"] for bullet in diff["removed"]] == [ADD["content"]]


def test_a_roll_back_is_a_new_version_with_the_old_bullets(rest: Rest, path: str) -> None:
    edit(rest, path, ADD, UPDATE)
    rolled = rest.post(f"{path}/versions/1/rollback")
    assert (rolled.status_code, rolled.json()["version"]) == (201, 3)
    assert rest.get(path).json()["content"] == rest.get(f"{path}?version=1").json()["content"]


def test_bullets_have_counters_and_section(rest: Rest, path: str) -> None:
    first = rest.get(f"{path}/bullets").json()["results"][0]
    assert (first["id"], first["helpful"], first["harmful"]) == ("str-00001", 2, 0)
    assert first["section"] == "strategies_and_insights"


def test_bullets_are_filtered_by_section_and_status(rest: Rest, path: str) -> None:
    edit(rest, path, {"type": "REMOVE", "id": "str-00001", "reason": "wrong"})

    def ids(query: str) -> list[str]:
        found = rest.get(f"{path}/bullets?{query}").json()["results"]
        return [bullet["id"] for bullet in found]

    assert ids("") == ["str-00002", "mis-00003"]
    assert ids("status=retired") == ["str-00001"]
    assert ids("status=all&section=common_mistakes_to_avoid") == ["mis-00003"]


def test_an_archived_playbook_is_read_but_not_edited(rest: Rest, path: str) -> None:
    rest.delete(path)
    assert rest.get(path).status_code == 200
    assert edit(rest, path, ADD).status_code == 409


def test_a_bullets_history_shows_author_and_votes(rest: Rest, path: str, alice: User) -> None:
    reported = {"task_description": "a", "outcome": "success", "bullet_ids": ["str-00001"]}
    rest.post(f"{path}/outcomes", reported)
    run_evolution(rest.post(f"{path}/evolutions").json()["job_id"])
    edit(rest, path, UPDATE)
    history = rest.get(f"{path}/bullets/str-00001/history").json()
    assert history["introduced_by"]["author_id"] == str(alice.pk)
    assert [(c["version"], c["type"]) for c in history["changes"]] == [(3, "UPDATE")]
    (vote,) = history["votes"]
    assert vote["outcome_id"] == rest.get(f"{path}/outcomes").json()["results"][0]["id"]
    assert (vote["tag"], vote["source"]) == ("helpful", "rules")
    assert (history["bullet"]["content"], history["vote_count"]) == (UPDATE["content"], 1)


def test_the_history_of_a_starters_bullet_can_be_read(rest: Rest, db: None) -> None:
    load_starters()
    starter = Playbook.objects.starters()[0]
    bullet = starter.bullets.all()[0]
    history = rest.get(f"/playbooks/{starter.pk}/bullets/{bullet.public_id}/history").json()
    assert history["introduced_by"]["author_id"] is None


@pytest.mark.parametrize("bullet", ["str-00009", "x", "%00", "str-00001%20"])
def test_the_history_of_an_unknown_bullet_is_not_found(rest: Rest, path: str, bullet: str) -> None:
    assert rest.get(f"{path}/bullets/{bullet}/history").status_code == 404
