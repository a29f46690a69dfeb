"""Online adaptation: predict first, then learn."""

from evolution.engine.adaptation.adapters import AdapterOptions, OnlineAdapter, OnlineResult
from evolution.engine.environments import Sample
from tests.evolution.training.fakes import FakeSolver, TrainingHarness, samples


def stream(scene: TrainingHarness, rows: list[Sample], window: int = 2) -> OnlineResult:
    options = AdapterOptions(batch_size=window)
    return OnlineAdapter(stream=rows, options=options, **scene.parts()).run()


def test_a_window_is_predicted_before_it_is_learnt() -> None:
    known = samples("red", "blue")
    streamed = stream(TrainingHarness(), [*known, *known])
    assert [score.accuracy for score in streamed.windows] == [0.0, 1.0]
    assert streamed.as_dict()["accuracy"] == 0.5


def test_the_stream_keeps_its_order_and_its_last_window_may_be_smaller() -> None:
    scene = TrainingHarness()
    streamed = stream(scene, samples(*"abc"))
    tasks = [[o.task for o in outcomes] for _, outcomes in scene.learner.batches]
    assert tasks == [["Question 1?", "Question 2?"], ["Question 3?"]]
    assert streamed.progress.done == streamed.progress.total == 3


def test_a_sample_without_an_answer_counts_as_wrong() -> None:
    streamed = stream(TrainingHarness(solver=FakeSolver(fails_on="s1")), samples("red"))
    assert streamed.as_dict()["accuracy"] == 0.0
    assert streamed.progress.failed_samples == 1
