"""The environment that an option names: what it withholds, and what it refuses in a sentence."""

import shlex
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from evolution.engine.environments import (
    MATCHES,
    Feedback,
    Question,
    Sample,
    environment_for,
    evaluate_sample,
    without_labels,
)
from evolution.engine.generator import Generation

SAMPLE = Sample(Question("s1", "A task."), "42")
TELLING = '{"status": "failure", "score": 0.25, "message": "It is 42.", "ground_truth": "42"}'
CALLED = f"call:{__name__}:telling"
RUN = shlex.join([sys.executable, "-c", f"print({TELLING!r})"])


def telling(sample: Sample, generation: Generation) -> Feedback:
    return Feedback.model_validate_json(TELLING)


def asked(name: str, *, labels: bool) -> Feedback:
    environment = environment_for(name, [SAMPLE], seconds=10)
    judge = environment if labels else without_labels(environment)
    return evaluate_sample(judge, SAMPLE, Generation(final_answer="42"))


@pytest.mark.parametrize("name", [CALLED, f"run:{RUN}"])
def test_a_check_that_tells_the_answer_keeps_only_its_verdict_without_labels(name: str) -> None:
    assert asked(name, labels=True).ground_truth == "42"
    withheld = asked(name, labels=False)
    assert (withheld.status, withheld.score, withheld.ground_truth) == ("failure", 0.25, None)
    assert withheld.message == "The answer is wrong."


def knows_the_label(sample: Sample, generation: Generation) -> bool:
    return sample.target == generation.final_answer


@pytest.mark.parametrize("name", ["auto", "answer", "exact", "number", "list"])
def test_without_labels_nobody_says_right_or_wrong(name: str) -> None:
    assert asked(name, labels=True).status == "success"
    found = asked(name, labels=False)
    assert (found.status, found.is_checked, found.ground_truth) == ("partial", False, None)


def test_a_row_without_a_target_is_judged_by_nobody() -> None:
    found = evaluate_sample(MATCHES["number"], Sample(SAMPLE.question), Generation(final_answer=""))
    assert (found.status, found.is_checked) == ("partial", False)


def test_a_check_of_ones_own_is_not_given_the_label() -> None:
    name = f"call:{__name__}:knows_the_label"
    assert asked(name, labels=True).status == "success"
    assert asked(name, labels=False).status == "failure"


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
        environment_for(name, [SAMPLE])


@pytest.mark.parametrize("option", ["--val-split", "--environment-seconds"])
@pytest.mark.parametrize("value", ["inf", "nan", "-1", "much"])
def test_an_amount_that_is_none_is_refused_in_a_sentence(option: str, value: str) -> None:
    with pytest.raises(CommandError, match=f"argument {option}: invalid"):
        call_command("ace_offline_train", f"{option}={value}", "--dataset=a", "--playbook=b")
