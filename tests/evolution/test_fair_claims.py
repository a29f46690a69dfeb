"""Owners take turns, and nobody's queue is anybody else's wait."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from accounts.models import LlmKey, User
from core.security.encryption import encrypt
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob
from evolution.worker.claims import Claim, claim_job, claim_next
from tests.factories import make_outcome, make_playbook, make_user
from tests.harness.concurrency import run_concurrently

pytestmark = pytest.mark.databases


@pytest.fixture(autouse=True)
def two_at_a_time(settings: Any) -> None:
    settings.EVOLUTIONS_PER_OWNER = 2


@pytest.fixture
def bob() -> User:
    return make_user("bob-with-one-job@example.org")


def queue_jobs(owner: User, count: int) -> list[str]:
    made = []
    for number in range(count):
        playbook = make_playbook(owner, name=f"Playbook {number}")
        make_outcome(playbook, owner)
        job = trigger_evolution(playbook=playbook, by=Principal.of(owner)).job
        made.append(str(job.pk))
    return made


def give_endpoint(owner: User) -> None:
    key = encrypt("a key of their own")
    LlmKey.objects.create(user=owner, encrypted_key=key, base_url="https://llm.example.org/v1")


def claim(
    served: dict[UUID, int], has_room: Callable[[bool, bool], bool] = lambda *_: True
) -> Claim | None:
    found = claim_next(worker="w", has_room=has_room, served=served)
    if found is not None:
        served[found.owner_id] = max(served.values(), default=0) + 1
    return found


def complete(claim: Claim) -> None:
    EvolutionJob.objects.filter(pk=claim.job_id).update(status="completed")


def test_another_owners_job_comes_next_however_many_are_before_it(
    db: None, alice: User, bob: User
) -> None:
    queue_jobs(alice, 4)
    queue_jobs(bob, 1)
    served: dict[UUID, int] = {}
    first, second = claim(served), claim(served)
    assert first is not None and second is not None
    assert (first.owner_id, second.owner_id) == (alice.pk, bob.pk)


def test_owners_take_turns_when_there_is_one_slot(db: None, alice: User, bob: User) -> None:
    queue_jobs(alice, 4)
    queue_jobs(bob, 2)
    served, owners = dict[UUID, int](), []
    while (found := claim(served)) is not None:
        owners.append(found.owner_id == alice.pk)
        complete(found)
    assert owners == [True, False, True, False, True, True]


def test_an_owner_has_so_many_at_a_time_and_no_more(db: None, alice: User) -> None:
    jobs, served = queue_jobs(alice, 3), dict[UUID, int]()
    first = claim(served)
    assert first is not None and claim(served) is not None
    assert claim(served) is None and claim_job(jobs[2]) is None
    complete(first)
    assert claim(served) is not None


@pytest.mark.django_db(transaction=True)
def test_claims_at_the_same_moment_do_not_exceed_it(alice: User) -> None:
    jobs = queue_jobs(alice, 4)
    claims = run_concurrently(8, lambda number: claim_job(jobs[number % 4]))
    assert sum(claim is not None for claim in claims) <= 2
    assert EvolutionJob.objects.running().count() <= 2


def test_an_endpoint_of_ones_own_takes_no_slot_from_the_others(
    db: None, alice: User, bob: User
) -> None:
    give_endpoint(alice)
    queue_jobs(alice, 2)
    queue_jobs(bob, 1)
    found = claim({}, has_room=lambda own, _: not own)
    assert found is not None and (found.owner_id, found.own_endpoint) == (bob.pk, False)
    found = claim({}, has_room=lambda own, _: own)
    assert found is not None and (found.owner_id, found.own_endpoint) == (alice.pk, True)


def test_a_key_without_an_endpoint_is_like_everybody_else(db: None, alice: User) -> None:
    LlmKey.objects.create(user=alice, encrypted_key=encrypt("a key of their own"))
    queue_jobs(alice, 1)
    found = claim({})
    assert found is not None and not found.own_endpoint


def test_a_rescued_job_waits_while_another_one_runs(db: None, alice: User) -> None:
    first, _ = queue_jobs(alice, 2)
    EvolutionJob.objects.filter(pk=first).update(rescues=1)
    found = claim({}, has_room=lambda _, is_rescued: not is_rescued)
    assert found is not None and str(found.job_id) != first
    found = claim({})
    assert found is not None and str(found.job_id) == first and found.is_rescued


def test_a_claim_says_which_worker_holds_the_job(db: None, alice: User) -> None:
    queue_jobs(alice, 1)
    assert claim({}) is not None
    assert EvolutionJob.objects.get().worker == "w"
