"""A refinement within an evolution: when it comes, what it keeps, and what it cannot break."""

from collections.abc import Iterator

import pytest
from django.conf import LazySettings

from accounts.models import User
from billing.models import UsageRecord
from core.security.scopes import Principal
from evolution.jobs.lifecycle import trigger_evolution
from evolution.models import EvolutionJob
from evolution.worker import publication
from evolution.worker.tasks import run_evolution
from playbooks.document.operations import Operation
from playbooks.models import Delta, DuplicateDecision, Playbook, Vote
from playbooks.services.editing import edit_playbook
from playbooks.services.rollback import rollback_playbook
from tests.factories import make_outcome, make_playbook, text_of_playbook
from tests.harness.fake_llm.model import ALWAYS, FakeLLM
from tests.harness.history import verify_playbook

# The ledger writes from a thread of its own, which a test's open transaction would lock out.
pytestmark = pytest.mark.django_db(transaction=True)
SUM = "Check that the sum of the parts equals the total before you answer."
SAME = "Always check that the sum of the parts equals the total before you answer."
OTHER = "Check that the sum of the debts equals the total before you answer."
TEXT = "## STRATEGIES & INSIGHTS\n" + "".join(
    f"[str-{number:05d}] helpful={helpful} harmful=0 :: {content}\n"
    for number, helpful, content in [
        (1, 5, SUM),
        (2, 7, SAME),
        *(
            (n, 0, f"{'abcdefghijklmnopqrstuvwxyz'[n] * 9} {n * 7919} stays as it is")
            for n in range(3, 26)
        ),
    ]
)


@pytest.fixture
def fake(settings: LazySettings) -> Iterator[FakeLLM]:
    with FakeLLM() as llm:
        settings.ACE_ENGINE, settings.OPENAI_API_KEY = "openai", "k"
        settings.OPENAI_BASE_URL = llm.base_url
        yield llm


@pytest.fixture
def grown(alice: User) -> Playbook:
    return make_playbook(alice, text=TEXT)


def evolve(playbook: Playbook, by: User, **outcome: object) -> EvolutionJob:
    make_outcome(playbook, by, **outcome)
    job = trigger_evolution(playbook=playbook, by=Principal.of(by)).job
    run_evolution(str(job.pk))
    job.refresh_from_db()
    playbook.refresh_from_db()
    return job


def text_of(playbook: Playbook) -> str:
    return text_of_playbook(playbook)


def test_the_evolution_merges_what_the_judge_finds_the_same(
    fake: FakeLLM, grown: Playbook, alice: User
) -> None:
    job = evolve(grown, alice)
    assert job.status == "completed"
    assert f"[str-00002] helpful=12 harmful=0 :: {SAME}" in text_of(grown)
    assert "str-00001" not in text_of(grown)
    assert grown.refined_to == 26


def test_votes_of_merged_bullets_are_united_by_outcome(
    fake: FakeLLM, grown: Playbook, alice: User
) -> None:
    evolve(grown, alice, bullet_ids=["str-00001", "str-00002"])
    assert "[str-00002] helpful=13 harmful=0" in text_of(grown)
    assert Vote.objects.count() == 2


def test_the_judge_is_asked_once_and_metered(fake: FakeLLM, grown: Playbook, alice: User) -> None:
    job = evolve(grown, alice)
    evolve(grown, alice)
    assert fake.count("judge") == 1
    (record,) = UsageRecord.objects.filter(operation="judge")
    assert (record.job_id, record.status) == (job.pk, "answered")
    metered = sum(UsageRecord.objects.values_list("total_tokens", flat=True))
    assert metered == fake.served_tokens


def test_a_decision_is_a_row_with_both_hashes(fake: FakeLLM, grown: Playbook, alice: User) -> None:
    job = evolve(grown, alice)
    decision = DuplicateDecision.objects.get()
    assert (decision.first, decision.second, decision.is_duplicate) == (
        "str-00001",
        "str-00002",
        True,
    )
    hashes = dict(grown.bullets.values_list("public_id", "content_hash"))
    assert (decision.first_hash, decision.second_hash) == (hashes["str-00001"], hashes["str-00002"])
    assert decision.job_id == job.pk


def test_a_judge_that_fails_costs_its_merges_only(
    fake: FakeLLM, grown: Playbook, alice: User
) -> None:
    fake.fail("judge", status=400, times=ALWAYS)
    job = evolve(grown, alice, notes="lesson: Read the footnotes of every table.")
    assert (job.status, grown.refined_to) == ("completed", 1)
    assert all(text in text_of(grown) for text in (SUM, SAME, "footnotes"))
    assert not DuplicateDecision.objects.exists()


def test_while_the_provider_is_away_the_evolution_waits_and_pays_nothing_twice(
    fake: FakeLLM, grown: Playbook, alice: User
) -> None:
    fake.fail("judge", status=429)
    job = evolve(grown, alice)
    assert (job.status, job.attempt, grown.versions.count()) == ("queued", 0, 1)
    EvolutionJob.objects.update(next_attempt_at=None)
    run_evolution(str(job.pk))
    assert "str-00001" not in text_of(Playbook.objects.get())
    assert [fake.count(role) for role in ("reflector", "curator", "judge")] == [1, 1, 2]


def test_the_next_evolution_tries_again(fake: FakeLLM, grown: Playbook, alice: User) -> None:
    fake.fail("judge", status=400)
    evolve(grown, alice)
    evolve(grown, alice)
    assert "str-00001" not in text_of(grown)


def test_a_small_playbook_is_not_refined(fake: FakeLLM, alice: User) -> None:
    lines = TEXT.splitlines(keepends=True)
    playbook = make_playbook(alice, text="".join(lines[:20]))
    evolve(playbook, alice)
    assert (fake.count("judge"), playbook.refined_to) == (0, 1)


def test_not_the_same_is_kept_and_an_edit_asks_anew(fake: FakeLLM, alice: User) -> None:
    playbook = make_playbook(alice, text=TEXT.replace(SAME, OTHER))
    evolve(playbook, alice)
    Playbook.objects.update(refined_to=1)
    evolve(playbook, alice)
    assert fake.count("judge") == 1
    edit = Operation("UPDATE", id="str-00001", content=OTHER.replace("debts", "fees"))
    edit_playbook(playbook=playbook, by=Principal.of(alice), operations=[edit])
    Playbook.objects.update(refined_to=1)
    evolve(playbook, alice)
    assert fake.count("judge") == 2
    assert list(DuplicateDecision.objects.values_list("is_duplicate", flat=True)) == [False, False]


def test_a_merge_that_a_person_rolled_back_is_not_made_again(
    fake: FakeLLM, grown: Playbook, alice: User
) -> None:
    evolve(grown, alice)
    rollback_playbook(playbook=grown, by=Principal.of(alice), number=1)
    Playbook.objects.update(refined_to=1)
    evolve(grown, alice)
    assert "str-00001" in text_of(grown)
    assert fake.count("judge") == 1


def test_a_retry_pays_for_no_verdict_twice(
    fake: FakeLLM, grown: Playbook, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(publication, "publish_deltas", _no_room_left)
        job = evolve(grown, alice)
    assert (job.status, grown.refined_to, DuplicateDecision.objects.count()) == ("queued", 1, 1)
    EvolutionJob.objects.update(next_attempt_at=None)
    run_evolution(str(job.pk))
    assert "str-00001" not in text_of(Playbook.objects.get())
    assert fake.count("judge") == 1


@pytest.mark.parametrize("ended", ["failed", "cancelled"])
def test_a_verdict_of_a_job_that_published_nothing_is_used_by_the_next_one(
    fake: FakeLLM,
    grown: Playbook,
    alice: User,
    monkeypatch: pytest.MonkeyPatch,
    ended: str,
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(publication, "publish_deltas", _no_room_left)
        evolve(grown, alice)
    EvolutionJob.objects.update(status=ended)
    job = evolve(grown, alice)
    assert (job.status, fake.count("judge")) == ("completed", 1)
    assert "str-00001" not in text_of(grown)
    assert DuplicateDecision.objects.get().job_id == job.pk


def _no_room_left(**_: object) -> None:
    raise RuntimeError("no space left on device")


def test_a_pinned_bullet_is_not_even_asked_about(
    fake: FakeLLM, grown: Playbook, alice: User
) -> None:
    pin = Operation("PIN", id="str-00001", tag="on")
    edit_playbook(playbook=grown, by=Principal.of(alice), operations=[pin])
    evolve(grown, alice)
    assert fake.count("judge") == 0


def test_a_merge_is_an_ordinary_delta_and_replays(
    fake: FakeLLM, grown: Playbook, alice: User
) -> None:
    job = evolve(grown, alice)
    merged = Delta.objects.filter(job_id=job.pk, type="MERGE", status="applied")
    assert set(merged.values_list("bullet_public_id", flat=True)) == {"str-00001", "str-00002"}
    assert verify_playbook(grown) == []


def test_without_a_model_only_what_differs_in_nothing_is_merged(alice: User) -> None:
    playbook = make_playbook(alice, text=TEXT.replace(SAME, SUM.replace("parts", "part")))
    evolve(playbook, alice)
    assert "str-00001" not in text_of(playbook)
    assert DuplicateDecision.objects.get().judge == "rules"
