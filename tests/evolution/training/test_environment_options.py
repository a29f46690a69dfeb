"""The environment that an option names: what it withholds, and what it refuses in a sentence."""

import shlex
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from evolution.engine.environments import (
    Feedback,
    Question,
    Sample,
    environment_for,
    evaluate_sample,
)
from evolution.engine.generator import Generation

SAMPLE = Sample(Question("s1", "A task."), "42")
TELLING = '{"status": "failure", "score": 0.25, "message": "It is 42.", "ground_truth": "42"}'
CALLED = f"call:{__name__}:telling"
RUN = shlex.join([sys.executable, "-c", f"print({TELLING!r})"])


def telling(sample: Sample, generation: Generation) -> Feedback:
    return Feedback.model_validate_json(TELLING)


def asked(name: str, *, reveal: bool) -> Feedback:
    environment = environment_for(name, [SAMPLE], reveal=reveal, seconds=10)
    return evaluate_sample(environment, SAMPLE, Generation(final_answer="7"))


@pytest.mark.parametrize("name", [CALLED, f"run:{RUN}"])
def test_a_custom_check_reveals_only_right_or_wrong_when_asked_to(name: str) -> None:
    assert asked(name, reveal=True).ground_truth == "42"
    withheld = asked(name, reveal=False)
    assert (withheld.status, withheld.score, withheld.ground_truth) == ("failure", 0.25, None)
    assert withheld.message == "The answer is wrong."


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("call:broken_checks:is_right", "cannot be imported: ZeroDivisionError"),
        ("run:/no/such/check now", "There is no program '/no/such/check'"),
        ("run:", "Name a program"),
    ],
)
def test_a_check_that_cannot_be_had_is_refused_before_anything_is_asked(
    name: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_checks.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match=sentence):
        environment_for(name, [SAMPLE], reveal=True, seconds=10)


@pytest.mark.parametrize("option", ["--val-split", "--environment-seconds"])
@pytest.mark.parametrize("value", ["inf", "nan", "-1", "much"])
def test_an_amount_that_is_none_is_refused_in_a_sentence(option: str, value: str) -> None:
    with pytest.raises(CommandError, match=f"argument {option}: invalid"):
        call_command("ace_offline_train", f"{option}={value}", "--dataset=a", "--playbook=b")
