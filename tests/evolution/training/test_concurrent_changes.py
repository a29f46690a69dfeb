"""A training among other people's work: edits, other evolutions, votes."""

from pathlib import Path

import pytest
from django.conf import LazySettings

from accounts.models import User
from core.security.scopes import Principal
from evolution.engine.adaptation.protocols import PlaybookSnapshot
from evolution.engine.inputs import OutcomeInput
from evolution.jobs.triggers import ensure_job
from evolution.models import TrainingRun
from evolution.training import runs
from evolution.training.command import summary_table
from evolution.training.learner import StoredPlaybook, TrainingStopped, snapshot_of
from evolution.training.runs import RunTakenOver, StoredSteps
from playbooks.document.operations import Operation
from playbooks.models import Playbook, Version, Vote
from playbooks.services.editing import edit_playbook
from tests.evolution.training.run_commands import train
from tests.factories import make_playbook
from tests.harness.fake_llm.learning import LearningLLM, fact
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.history import verify_playbook

pytestmark = pytest.mark.django_db(transaction=True)
DATA = Path(__file__).parents[2] / "data"


@pytest.fixture
def learner(playbook: Playbook, alice: User) -> StoredPlaybook:
    by = Principal.of(alice)
    training = runs.begin_training(playbook=playbook, by=by, kind="offline", config={})
    return StoredPlaybook(training, StoredSteps(training), budget=None, wait=lambda seconds: None)


def edit(playbook: Playbook, by: User) -> Version:
    operation = Operation("ADD", section="OTHERS", content="Ask a person when in doubt.")
    edited = edit_playbook(playbook=playbook, by=Principal.of(by), operations=[operation]).version
    assert edited is not None
    return edited


def test_a_version_that_a_person_made_meanwhile_is_never_rolled_back(
    learner: StoredPlaybook, playbook: Playbook, alice: User
) -> None:
    first = learner.start()
    edited = edit(playbook, alice)
    assert learner.keep(first).label == str(edited.number)
    assert Version.objects.filter(playbook=playbook).count() == 2


def test_a_process_that_was_taken_over_rolls_nothing_back(
    learner: StoredPlaybook, playbook: Playbook, alice: User
) -> None:
    edit(playbook, alice)
    TrainingRun.objects.update(fence=9)
    with pytest.raises(RunTakenOver):
        learner.keep(learner.start())
    assert Version.objects.filter(playbook=playbook).count() == 2


def test_a_run_begins_with_the_version_of_now_not_with_the_one_read_before(
    playbook: Playbook, alice: User
) -> None:
    read = Playbook.objects.select_related("current_version").get(pk=playbook.pk)
    edited = edit(playbook, alice)
    by = Principal.of(alice)
    training = runs.begin_training(playbook=read, by=by, kind="offline", config={})
    assert training.from_version_id == edited.pk


def test_the_summary_says_when_the_best_version_is_not_the_current_one(
    blank: Playbook,
    lesser_world: dict[str, Path],
    llm: LearningLLM,
    alice: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keep = StoredPlaybook.keep

    def kept_after_an_edit(learner: StoredPlaybook, snapshot: PlaybookSnapshot) -> PlaybookSnapshot:
        edit(blank, alice)
        return keep(learner, snapshot)

    monkeypatch.setattr(StoredPlaybook, "keep", kept_after_an_edit)
    summary = train(blank, lesser_world)
    assert (summary["best_kept"], summary["best_version"]) == (False, summary["versions"]["to"] - 1)
    assert "not the current one" in summary_table(summary)


def test_a_playbook_that_reads_as_wanted_is_left_as_it_is(
    learner: StoredPlaybook, playbook: Playbook
) -> None:
    assert learner.keep(learner.start()).label == "1"
    assert Version.objects.filter(playbook=playbook).count() == 1


def test_another_evolution_that_does_not_end_stops_the_training_with_a_sentence(
    learner: StoredPlaybook, playbook: Playbook, alice: User
) -> None:
    ensure_job(playbook, trigger="manual", by=Principal.of(alice))
    with pytest.raises(TrainingStopped, match="Another evolution"):
        learner.learn("e1b1", [OutcomeInput(id="e1b1:s1", task="A task.", status="failure")])


def test_an_snapshot_carries_the_document_and_the_budget_of_its_version(playbook: Playbook) -> None:
    snapshot = snapshot_of(Version.objects.select_related("playbook").get(playbook=playbook))
    assert isinstance(snapshot, PlaybookSnapshot)
    assert (snapshot.label, snapshot.bullets) == ("1", 3)
    assert snapshot.playbook.token_budget == playbook.token_budget


def test_three_rounds_on_an_outcome_cast_one_vote(
    alice: User, lesser_world: dict[str, Path], llm: LearningLLM
) -> None:
    wrong = f"## OTHERS\n[misc-00001] helpful=0 harmful=0 :: {fact('castrell', 99)}\n"
    playbook = make_playbook(alice, name="Wrong", text=wrong)
    train(playbook, lesser_world, rounds=3)
    assert Vote.objects.filter(bullet__public_id="misc-00001", tag="harmful").count() == 1
    assert playbook.bullets.get(public_id="misc-00001").harmful == 1


@pytest.mark.parametrize("name", [pytest.param("formula", marks=pytest.mark.nightly), "finer"])
def test_published_rows_train_under_faults_and_every_token_is_metered(
    name: str, blank: Playbook, settings: LazySettings
) -> None:
    settings.ACE_ENGINE, settings.OPENAI_API_KEY = "openai", "test"
    rows = dict.fromkeys(("train", "val", "test"), DATA / f"{name}_sample.jsonl")
    with FakeLLM() as server:
        settings.OPENAI_BASE_URL = server.base_url
        for role in ("generator", "reflector", "curator"):
            server.fail(role, "truncated")
            server.fail(role, "malformed")
            server.fail(role, status=500)
            server.fail(role, status=429, retry_after="0.01")
        summary = train(blank, rows)
        assert summary["usage"]["tokens"] == server.served_tokens > 0
        assert summary["usage"]["failed_calls"] == 6
    assert verify_playbook(blank) == []
