"""kill -9 in a training, under faults of the provider: the same playbook, nothing paid twice."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import LazySettings, settings

from accounts.models import User
from billing.models import UsageRecord
from evolution.models import TrainingRun, TrainingStep
from playbooks.models import Playbook
from tests.evolution.training.run_commands import train
from tests.factories import make_playbook
from tests.harness.fake_llm.learning import LearningLLM
from tests.harness.fake_llm.model import FakeLLM
from tests.harness.forked_process import ForkedProcess, kill_at
from tests.harness.history import verify_playbook

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.faults]
DATA = Path(__file__).parents[2] / "data"


def start_child(playbook: Playbook, world: dict[str, Path], crash_at: str = "") -> ForkedProcess:
    """A training, which kills itself as kill -9 would where it comes to `crash_at`."""

    def body() -> None:
        if crash_at:
            kill_at(crash_at)
        train(playbook, world)

    return ForkedProcess(body)


def texts(playbook: Playbook) -> list[str]:
    return list(playbook.versions.order_by("number").values_list("text", flat=True))


@dataclass(frozen=True)
class Unbroken:
    """A training that nothing disturbed: the texts of all its versions, and its calls."""

    texts: list[str]
    calls: int
    answers: int


MADE: list[Unbroken] = []


@pytest.fixture
def unbroken(alice: User, lesser_world: dict[str, Path], llm: LearningLLM) -> Unbroken:
    """Made once for this module: it is the same every time."""
    if not MADE:
        playbook = make_playbook(alice, name="Unbroken", text="")
        train(playbook, lesser_world)
        MADE.append(Unbroken(texts(playbook), llm.count(), llm.count("generator")))
        llm.requests.clear()
        llm.served_tokens = 0
    return MADE[0]


@pytest.mark.parametrize(
    "crash_at",
    [
        pytest.param("evolution.training.learner:prepare_job", marks=pytest.mark.nightly),
        pytest.param("evolution.training.learner:prepare_job:end", marks=pytest.mark.nightly),
        pytest.param("evolution.training.learner:run_engine:end", marks=pytest.mark.nightly),
        "evolution.training.learner:publish:end",
        "evolution.training.runs:complete_training",
    ],
)
def test_killed_anywhere_the_run_resumes_to_the_same_playbook(
    crash_at: str,
    blank: Playbook,
    lesser_world: dict[str, Path],
    llm: LearningLLM,
    unbroken: Unbroken,
) -> None:
    with start_child(blank, lesser_world, crash_at) as child:
        assert child.wait(60) == -9
    summary = train(blank, lesser_world, resume=True)
    assert texts(blank) == unbroken.texts
    assert summary["usage"]["calls"] == llm.count() == unbroken.calls
    assert verify_playbook(blank) == []


def test_killed_while_answering_only_the_calls_under_way_are_asked_again(
    blank: Playbook, lesser_world: dict[str, Path], llm: LearningLLM, unbroken: Unbroken
) -> None:
    gate = llm.hold("generator", after=5)
    with start_child(blank, lesser_world) as child:
        gate.wait_for(5 + settings.LLM_CONCURRENCY)
        child.kill()
    gate.open()
    train(blank, lesser_world, resume=True)
    assert texts(blank) == unbroken.texts
    assert 0 < UsageRecord.objects.filter(status="started").count() <= settings.LLM_CONCURRENCY
    assert 0 < llm.count("generator") - unbroken.answers <= settings.LLM_CONCURRENCY


def test_faults_of_the_provider_change_nothing_but_the_bill(
    blank: Playbook, lesser_world: dict[str, Path], llm: LearningLLM, unbroken: Unbroken
) -> None:
    for role in ("generator", "reflector", "curator"):
        llm.fail(role, status=429, retry_after="0.01")
        llm.fail(role, status=500)
        llm.fail(role, "truncated")
        llm.fail(role, "malformed")
    summary = train(blank, lesser_world)
    assert texts(blank) == unbroken.texts
    assert summary["usage"]["tokens"] == llm.served_tokens
    assert summary["usage"]["failed_calls"] == 6


def test_killed_after_its_roll_back_the_run_does_not_roll_back_twice(
    blank: Playbook, settings: LazySettings
) -> None:
    settings.ACE_ENGINE, settings.OPENAI_API_KEY = "openai", "test"
    rows = dict.fromkeys(("train", "val", "test"), DATA / "formula_sample.jsonl")
    with FakeLLM() as server:
        settings.OPENAI_BASE_URL = server.base_url
        with start_child(blank, rows, "evolution.training.runs:complete_training") as child:
            assert child.wait(60) == -9
        summary = train(blank, rows, resume=True)
    assert blank.versions.filter(reason="rollback").count() == 1
    assert summary["versions"]["to"] == blank.versions.count() == 6
    assert verify_playbook(blank) == []


def test_a_process_that_was_taken_over_stores_nothing_more(
    blank: Playbook, lesser_world: dict[str, Path], llm: LearningLLM, unbroken: Unbroken
) -> None:
    gate = llm.hold("generator", after=5)
    with start_child(blank, lesser_world) as child:
        gate.wait_for(5 + settings.LLM_CONCURRENCY)
        TrainingRun.objects.filter(status="running").update(fence=9)
        steps = TrainingStep.objects.filter(run__status="running").count()
        gate.open()
        assert child.wait(60) == 1
    assert TrainingStep.objects.filter(run__status="running").count() == steps
