"""The environment that an option names: what it withholds, and what it refuses in a sentence."""

import shlex
import sys

import pytest

from evolution.engine.environments import Feedback, Question, Sample, judged
from evolution.engine.generator import Generation
from evolution.training.environments import environment_for

SAMPLE = Sample(Question("s1", "A task."), "42")
TELLING = '{"status": "failure", "score": 0.25, "message": "It is 42.", "ground_truth": "42"}'
CALLED = f"call:{__name__}:telling"
RUN = shlex.join([sys.executable, "-c", f"print({TELLING!r})"])


def telling(sample: Sample, generation: Generation) -> Feedback:
    return Feedback.model_validate_json(TELLING)


def asked(name: str, *, reveal: bool) -> Feedback:
    environment = environment_for(name, [SAMPLE], reveal=reveal, seconds=10)
    return judged(environment, SAMPLE, Generation(final_answer="7"))


@pytest.mark.parametrize("name", [CALLED, f"run:{RUN}"])
def test_a_check_of_ones_own_tells_no_more_than_right_or_wrong_when_asked_to(name: str) -> None:
    assert asked(name, reveal=True).ground_truth == "42"
    withheld = asked(name, reveal=False)
    assert (withheld.status, withheld.score, withheld.ground_truth) == ("failure", 0.25, None)
    assert withheld.message == "The answer is wrong."
