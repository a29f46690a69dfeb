"""Offline adaptation: scores, the snapshot that is kept, calls that are paid, withheld answers."""

from typing import Any

import pytest

from evolution.engine.adaptation.adapters import (
    AdapterOptions,
    OfflineAdapter,
    OfflineResult,
    OnlineAdapter,
)
from evolution.engine.environments import (
    Feedback,
    FunctionEnvironment,
    Sample,
    Unjudged,
    without_labels,
)
from evolution.engine.generator import Generation
from evolution.engine.llm import CredentialError, TransientError
from playbooks.document.sections import DEFAULT_SECTIONS
from playbooks.document.text import Bullet
from tests.evolution.training.fakes import FakeLearner, FakeSolver, TrainingHarness, samples


def adapt(
    scene: TrainingHarness, train: list[Sample], val: list[Sample], **options: Any
) -> OfflineResult:
    return OfflineAdapter(
        train=train, validation=val, options=AdapterOptions(**options), **scene.parts()
    ).run()


def test_the_baseline_is_scored_before_anything_is_learnt() -> None:
    scene, known = TrainingHarness(), samples("red", "blue")
    adapted = adapt(scene, known, known)
    assert scene.solver.asked[0][0].startswith("vali")
    assert (adapted.before.accuracy, adapted.after.accuracy) == (0.0, 1.0)
    assert [point.step for point in adapted.progress.points] == [0, 1]


def test_a_dataset_smaller_than_the_evaluation_interval_is_evaluated_and_used() -> None:
    scene, known = TrainingHarness(), samples("red")
    adapted = adapt(scene, known, known, evaluate_every=100, batch_size=10)
    assert adapted.after.accuracy == 1.0
    assert scene.learner.kept == "1"


def test_a_tie_keeps_the_old_playbook() -> None:
    scene = TrainingHarness()
    adapted = adapt(scene, samples("red"), [samples("x", "never learnt")[1]])
    assert (adapted.before.accuracy, adapted.after.accuracy) == (0.0, 0.0)
    assert scene.learner.kept == "0"


def test_a_worse_snapshot_is_not_kept() -> None:
    right = Bullet("str-00001", DEFAULT_SECTIONS[0].key, "Question 1? red")
    scene = TrainingHarness(learner=FakeLearner(forgets=True, snapshots=[(right,)]))
    adapted = adapt(scene, samples("red"), samples("red"))
    assert [point.accuracy for point in adapted.progress.points] == [1.0, 0.0]
    assert scene.learner.kept == "0"


def test_a_sample_without_an_answer_counts_as_wrong_and_teaches_nothing() -> None:
    scene, known = TrainingHarness(solver=FakeSolver(fails_on="s1")), samples("red", "blue")
    adapted = adapt(scene, known, known)
    assert (adapted.after.accuracy, adapted.after.failed, adapted.after.samples) == (0.5, 1, 2)
    assert adapted.progress.failed_samples == 1
    assert [outcome.task for outcome in scene.learner.batches[0][1]] == ["Question 2?"]


def test_an_snapshot_that_reads_the_same_is_not_scored_again() -> None:
    scene, known = TrainingHarness(), samples("red")
    adapt(scene, known, known, epochs=3)
    scored = [key for key, _, _ in scene.solver.asked if key.startswith("vali")]
    assert len(scored) == 2


def test_the_order_follows_from_the_seed() -> None:
    def order(seed: int) -> list[str]:
        scene = TrainingHarness()
        known = samples(*"abcdefgh")
        adapt(scene, known, known[:1], batch_size=2, seed=seed, epochs=2)
        return [outcome.task for _, outcomes in scene.learner.batches for outcome in outcomes]

    assert order(1) == order(1) != order(2)
    assert order(1)[:8] != order(1)[8:]


def test_a_run_that_was_stopped_goes_on_and_pays_for_nothing_twice() -> None:
    scene, known = TrainingHarness(), samples(*"abcdef")
    whole = adapt(TrainingHarness(), known, known[:2], batch_size=2)
    ask, count = scene.solver.generate, iter(range(100))

    def dies(*args: Any) -> Any:
        if next(count) == 4:
            raise CredentialError("quota_used_up", "No credit.")
        return ask(*args)

    scene.solver.generate = dies  # type: ignore[assignment, method-assign]
    with pytest.raises(CredentialError):
        adapt(scene, known, known[:2], batch_size=2, concurrency=1)
    stored = len(scene.checkpoints.kept)
    again = TrainingHarness(checkpoints=scene.checkpoints)
    assert adapt(again, known, known[:2], batch_size=2).as_dict() == whole.as_dict()
    assert len(again.solver.asked) == len(again.checkpoints.kept) - stored


def test_a_passing_fault_is_waited_for_and_a_lasting_one_ends_the_run() -> None:
    scene, known = TrainingHarness(), samples("red")

    def refuses(*args: Any) -> Any:
        raise TransientError("provider_fault", "A fault.", retry_after=30)

    scene.solver.generate = refuses  # type: ignore[assignment, method-assign]
    with pytest.raises(TransientError):
        adapt(scene, known, known)
    assert scene.waits == [30, 30, 60, 120]


def test_three_rounds_on_a_sample_are_one_outcome() -> None:
    scene, known = TrainingHarness(), samples("red")
    scene.solver.after_reflection = lambda question: "yellow"
    adapt(scene, known, known, rounds=3)
    (_, [outcome]) = scene.learner.batches[0]
    assert len(scene.solver.reflected) == 2
    assert outcome.status == "failure"
    assert outcome.trace.count("Final answer:") == 3


def test_a_right_second_attempt_ends_the_rounds() -> None:
    scene, known = TrainingHarness(), samples("red")
    scene.solver.after_reflection = lambda question: "red"
    adapt(scene, known, known, rounds=5)
    assert len(scene.solver.reflected) == 1
    assert "Attempt 2 (success)" in scene.learner.batches[0][1][0].trace


def test_the_ground_truth_never_reaches_the_generator_not_even_through_a_reflection() -> None:
    scene, known = TrainingHarness(), samples("vermilion", "1,250.5")
    adapt(scene, known, known, rounds=3)
    prompts = [f"{question} {reflection}" for _, question, reflection in scene.solver.asked]
    assert len(scene.solver.reflected) == 4
    assert not any("vermilion" in text or "1,250.5" in text for text in prompts)


@pytest.mark.parametrize("target", ["", "red"])
def test_a_right_answer_that_the_environment_supplies_never_reaches_the_generator(
    target: str,
) -> None:
    class Knows:
        def evaluate(self, sample: Sample, generation: Generation) -> Feedback:
            return Feedback(status="failure", score=0, ground_truth="vermilion, 1,250.5")

    scene = TrainingHarness(environment=Knows())
    adapt(scene, samples(target), samples("x"), rounds=3)
    prompts = [str(reflection) for _, _, reflection in scene.solver.asked if reflection]
    assert len(prompts) == 2
    assert not any("vermilion" in text or "1,250.5" in text for text in prompts)


def test_in_the_self_judged_mode_labels_score_but_nobody_learns_from_them() -> None:
    scene, known = TrainingHarness(judge=Unjudged()), samples("vermilion", "no idea")
    adapted = adapt(scene, known, [], rounds=3)
    (_, outcomes) = scene.learner.batches[0]
    assert {(o.status, o.signal) for o in outcomes} == {("partial", "self_report")}
    assert "vermilion" not in f"{outcomes} {scene.solver.reflected}"
    assert scene.solver.reflected == []
    assert (scene.learner.kept, adapted.before.samples) == ("1", 0)


def test_a_check_without_labels_is_learnt_from_while_labels_score() -> None:
    def is_blue(sample: Sample, generation: Generation) -> bool:
        return not sample.target and generation.final_answer == "blue"

    judge = without_labels(FunctionEnvironment(is_blue))
    scene, known = TrainingHarness(judge=judge), samples("red")
    scene.solver.after_reflection = lambda question: "blue"
    streamed = OnlineAdapter(stream=known, options=AdapterOptions(rounds=2), **scene.parts()).run()
    (_, [outcome]) = scene.learner.batches[0]
    assert (outcome.status, outcome.signal) == ("failure", "test")
    assert "Attempt 2 (success)" in outcome.trace
    assert streamed.as_dict()["accuracy"] == 0.0
