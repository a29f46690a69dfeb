"""Learning, measured without a model: what this server answers can only come from its prompt.

The right answers follow from facts that only feedback reveals. It proves the machinery (feedback
→ reflection → bullet → better answers on tasks never seen), not a model's wisdom.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from accounts.models import User
from billing.models import UsageRecord
from core.security.scopes import Principal
from evolution.models import EvolutionJob, Outcome, TrainingRun
from playbooks.models import Playbook
from playbooks.services.rollback import rollback_playbook
from tests.evolution.training.run_commands import train
from tests.harness.fake_llm.learning import LearningLLM, targets_of
from tests.harness.history import verify_playbook

pytestmark = pytest.mark.django_db(transaction=True)


def test_accuracy_on_tasks_never_seen_rises_to_95_percent_and_falls_back_without_the_playbook(
    blank: Playbook, world: dict[str, Path], llm: LearningLLM
) -> None:
    summary = train(blank, world)
    assert summary["test"]["before"] == 0.2
    assert summary["test"]["after"] == 1.0
    assert summary["usage"]["tokens"] == llm.served_tokens
    assert UsageRecord.objects.filter(operation="generate").count() == llm.count("generator")
    assert verify_playbook(blank) == []
    assert TrainingRun.objects.get().status == "completed"
    rollback_playbook(playbook=blank, by=Principal.of(owner(blank)), number=1)
    again = train(blank, world, withhold_ground_truth=True)
    assert again["test"] == again["test"] | {"before": 0.2, "after": 0.2}


def test_with_ground_truth_withheld_the_target_appears_in_no_request(
    blank: Playbook, world: dict[str, Path], llm: LearningLLM
) -> None:
    summary = train(blank, world, withhold_ground_truth=True, rounds=3)
    sent = words(str(call.body["messages"]) for call in llm.requests)
    assert not targets_of(world.values()) & sent
    learnt = set(Outcome.objects.values_list("status", "signal"))
    assert learnt == {("partial", "self_report")}
    assert summary["validation"] is None


def test_with_ground_truth_given_the_generator_still_never_sees_a_target(
    blank: Playbook, lesser_world: dict[str, Path], llm: LearningLLM
) -> None:
    train(blank, lesser_world, rounds=2)
    asked = [str(call.body["messages"]) for call in llm.requests if call.role == "generator"]
    assert any("A reflection on the last attempt" in text for text in asked)
    assert not targets_of(lesser_world.values()) & words(asked)


def test_each_batch_is_an_ordinary_evolution_with_its_outcomes_and_its_version(
    blank: Playbook, lesser_world: dict[str, Path], llm: LearningLLM
) -> None:
    summary = train(blank, lesser_world, batch_size=4)
    jobs = EvolutionJob.objects.filter(training=summary["run"])
    assert [job.status for job in jobs] == ["completed"] * 3
    assert sum(job.outcomes_processed for job in jobs) == 10
    assert Outcome.objects.filter(signal="ground_truth", processed_at=None).count() == 0
    assert summary["versions"] == {"from": 1, "to": blank.versions.count()}


def words(texts: Iterable[str]) -> set[str]:
    """Every word and number: as substrings, targets would turn up in random boundaries."""
    return {word for text in texts for word in re.findall(r"\w+", text)}


def owner(playbook: Playbook) -> User:
    assert playbook.owner is not None
    return playbook.owner
