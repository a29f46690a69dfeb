"""Trials that an owner starts: does this bullet help, does the playbook help? By REST and page."""

from random import Random

import pytest
from pytest_django import Settings

from accounts.models import User
from core.errors import Conflict
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob
from playbooks.models import Playbook, Trial
from playbooks.services.reading import CONTROL_READING
from tests.factories import make_outcome
from tests.harness.clients import logged_in_client
from tests.harness.rest_client import Rest
from tests.harness.trials import LESSON, evolve, on_trial, rates, read, work

BULLET: dict[str, object] = {"kind": "bullet", "bullet_id": "str-00001"}
TEXT = "Read the failing test before the code."


@pytest.fixture(autouse=True)
def _quiet(settings: Settings) -> None:
    """No limit on reports."""
    settings.RATE_LIMITS = settings.RATE_LIMITS | {"report_outcome": "100000/h"}


def start(playbook: Playbook, by: User, body: dict[str, object]) -> dict[str, object]:
    answer = Rest.of(by).post(f"/playbooks/{playbook.pk}/trials", body)
    assert answer.status_code == 201, answer.json()
    found: dict[str, object] = answer.json()
    return found


def test_a_bullet_on_trial_is_left_out_of_half_of_the_readings(
    playbook: Playbook, alice: User
) -> None:
    told = start(playbook, alice, BULLET)
    assert (told["kind"], told["status"], told["verdict"], told["bullet_id"]) == (
        "bullet", "running", None, "str-00001",
    )  # fmt: skip
    contents = [read(playbook, alice).content for _ in range(40)]
    with_it = next(content for content in contents if TEXT in content)
    assert set(contents) == {with_it, with_it.replace(f"[str-00001] {TEXT}\n", "")}


def test_a_bare_reading_has_no_advice(playbook: Playbook, alice: User) -> None:
    assert start(playbook, alice, {"kind": "bare", "share": 0.5})["share"] == 0.5
    contents = {read(playbook, alice).content for _ in range(40)}
    assert len(contents) == 2
    assert CONTROL_READING in contents


def test_a_playbook_that_helps_is_proven_by_experiment(playbook: Playbook, alice: User) -> None:
    told = start(playbook, alice, {"kind": "bare"})
    work(playbook, alice, lambda text: 0.9 if TEXT in text else 0.0, 200, Random(1))
    found = Rest.of(alice).get(f"/trials/{told['id']}").json()
    assert (found["status"], found["verdict"]) == ("ended", "better")
    arms, evidence = found["arms"], found["evidence"]
    assert arms["stable"]["successes"] == 0
    assert evidence["better"] >= evidence["threshold"] == 10 > evidence["worse"]
    assert "tasks succeeded with the playbook" in found["reason"]


def test_evolutions_wait_until_the_owners_trial_ends(playbook: Playbook, alice: User) -> None:
    told = start(playbook, alice, BULLET)
    for _ in range(6):
        make_outcome(playbook, alice)
    with pytest.raises(Conflict) as refused:
        trigger_evolution(playbook=playbook, by=Principal.of(alice))
    assert (refused.value.code, EvolutionJob.objects.count()) == ("trial_open", 0)
    ended = Rest.of(alice).post(f"/trials/{told['id']}/end", {"keep": "newest"}).json()
    assert (ended["status"], ended["verdict"]) == ("ended", "stopped")
    make_outcome(playbook, alice)
    assert EvolutionJob.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "version"}, "kind"),
        ({"kind": "bullet"}, "bullet_id"),
        ({"kind": "bare", "bullet_id": "str-00001"}, "bullet_id"),
        ({"kind": "bare", "share": 0.6}, "share"),
        ({"kind": "bare", "share": 0}, "share"),
        ({**BULLET, "share": 0.5}, "share"),
    ],
)
def test_a_trial_that_makes_no_sense_is_refused(
    playbook: Playbook, alice: User, body: dict[str, object], field: str
) -> None:
    answer = Rest.of(alice).post(f"/playbooks/{playbook.pk}/trials", body)
    assert (answer.status_code, list(answer.json()["error"]["fields"])) == (400, [field])


def test_one_trial_at_a_time(playbook: Playbook, alice: User) -> None:
    start(playbook, alice, BULLET)
    answer = Rest.of(alice).post(f"/playbooks/{playbook.pk}/trials", {"kind": "bare"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "trial_open")


@pytest.mark.parametrize(("keep", "has_lesson"), [("newest", True), ("stable", False)])
def test_a_person_ends_the_trial_of_a_version(alice: User, keep: str, has_lesson: bool) -> None:
    playbook, rest = on_trial(alice), Rest.of(alice)
    listed = rest.get(f"/playbooks/{playbook.pk}/trials").json()["results"][0]
    assert (listed["stable_version"], listed["newest_version"]) == (1, 2)
    ended = rest.post(f"/trials/{listed['id']}/end", {"keep": keep}).json()
    assert (ended["verdict"], ended["newest_version"]) == ("stopped", 2)
    assert {LESSON in read(playbook, alice).content for _ in range(5)} == {has_lesson}
    again = rest.post(f"/trials/{listed['id']}/end", {"keep": keep})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "trial_ended")


def test_readings_of_one_task_agree_over_rest(alice: User) -> None:
    playbook = on_trial(alice)
    path = f"/playbooks/{playbook.pk}?task_key=issue-7"
    told = [Rest.of(alice).get(path).json()["version"] for _ in range(8)]
    assert len(set(told)) == 1


def test_the_page_says_what_is_known_in_one_sentence(alice: User) -> None:
    playbook = on_trial(alice)
    address = f"{playbook.get_absolute_url()}/evidence"
    work(playbook, alice, rates(0.9, 0.8), 12, Random(2))
    page = logged_in_client(alice).get(address).content.decode()
    assert "Version 2 is on trial against version 1: 12 tasks, no harm found yet." in page
    assert 'class="band"' in page
    logged_in_client(alice).post(f"/trials/{Trial.objects.get().pk}/end", {"keep": "stable"})
    page = logged_in_client(alice).get(address).content.decode()
    assert "Version 2 was reverted: Reverted by a person after 12 tasks." in page


def test_the_page_says_when_trials_begin(playbook: Playbook, alice: User) -> None:
    evolve(playbook, alice)
    page = logged_in_client(alice).get(f"{playbook.get_absolute_url()}/evidence").content.decode()
    assert "All agents read version 2, which is unproven." in page
    logged_in_client(alice).post(f"{playbook.get_absolute_url()}/trials")
    page = logged_in_client(alice).get(f"{playbook.get_absolute_url()}/evidence").content.decode()
    assert "The playbook is on trial: 0 tasks, no result yet." in page


def test_a_strangers_trial_is_not_found(alice: User, charlie: User) -> None:
    trial = on_trial(alice).open_trial
    assert trial is not None
    assert logged_in_client(charlie).post(f"/trials/{trial.pk}/end").status_code == 404
    assert Rest.of(charlie).get(f"/trials/{trial.pk}").status_code == 404
