"""Who says what is right: the shipped environments on answers as people and models write them."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from evolution.engine.adaptation.datasets import DatasetError, read_samples, split_samples
from evolution.engine.environments import (
    AnswerMatch,
    Environment,
    Feedback,
    FunctionEnvironment,
    ListMatch,
    NumberMatch,
    ProgramEnvironment,
    Question,
    Sample,
    Withholding,
    evaluate_sample,
    kind_of,
)
from evolution.engine.generator import Generation

DATA = Path(__file__).parents[2] / "data"


def evaluate(environment: Environment, answer: str, target: str) -> Feedback:
    sample = Sample(Question("s1", "A task."), target)
    return evaluate_sample(environment, sample, Generation(final_answer=answer))


@pytest.mark.parametrize(
    ("answer", "target"),
    [
        *[("15", "15.0"), ("15.00", "15.0"), ("15%", "15.0"), ("15 %", "0.15")],
        *[("$1,234.50", "1234.5"), ("“8.33”", "8.33"), ("8.3333", "8.33"), ("−3", "-3.0")],
        *[("(120)", "-120.0"), ("1e3", "1000.0"), ("1 000", "1000"), ("'2.0'.", "2.0")],
        *[("€ 41,698.65", "41698.65"), ("0.005", "0.01"), ("１２", "12")],
    ],
)
def test_a_number_is_right_however_it_is_written(answer: str, target: str) -> None:
    assert evaluate(NumberMatch(), answer, target).status == "success"


@pytest.mark.parametrize(
    "answer",
    ["15.01", "-15", "", "fifteen", "15 apples", "nan", "inf", "1.5e1000", "1" * 5000, "15.0.0"],
)
def test_another_number_or_none_is_wrong(answer: str) -> None:
    assert evaluate(NumberMatch(), answer, "15.0").score == 0.0


def test_text_is_compared_without_case_spacing_and_quotes_unless_exactly() -> None:
    assert evaluate(AnswerMatch(), " “Net  Present VALUE”. ", "Net present value").score == 1.0
    assert evaluate(AnswerMatch(exact=True), "net present value", "Net present value").score == 0.0


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        ("Goodwill,Depreciation , Goodwill,Revenues", 1.0),
        ("goodwill, depreciation, goodwill, revenues, Extra", 1.0),
        ("Depreciation,Goodwill,Goodwill,Revenues", 0.5),
        ("Goodwill", 0.25),
        ("", 0.0),
    ],
)
def test_a_list_is_compared_item_by_item_in_order(answer: str, score: float) -> None:
    feedback = evaluate(ListMatch(), answer, "Goodwill,Depreciation,Goodwill,Revenues")
    assert feedback.score == score
    assert feedback.status == {0.0: "failure", 1.0: "success"}.get(score, "partial")


@pytest.mark.parametrize("environment", [AnswerMatch, NumberMatch, ListMatch])
def test_what_is_withheld_does_not_stand_in_the_feedback(environment: Any) -> None:
    feedback = evaluate(Withholding(environment()), "1", "777")
    assert "777" not in feedback.model_dump_json()
    assert evaluate(environment(), "1", "777").ground_truth == "777"


async def slowly_right(sample: Sample, generation: Generation) -> bool:
    await asyncio.sleep(0)
    return generation.final_answer == sample.target


def breaks(sample: Sample, generation: Generation) -> bool:
    raise KeyError(sample.id)


def test_a_function_may_be_a_coroutine_and_one_that_breaks_counts_as_wrong() -> None:
    here = "tests.evolution.training.test_environments"
    assert evaluate(FunctionEnvironment.at(f"{here}:slowly_right"), "a", "a").status == "success"
    assert evaluate(FunctionEnvironment.at(f"{here}.breaks"), "a", "a").score == 0.0
    with pytest.raises(ValueError, match="no function"):
        FunctionEnvironment.at(f"{here}:nowhere")


class Awaited:
    async def evaluate(self, sample: Sample, generation: Generation) -> Feedback:
        return Feedback(status="partial", score=0.5)


def test_an_environment_may_be_a_coroutine() -> None:
    assert evaluate(Awaited(), "a", "a").score == 0.5


CHECK = """
import json, os, sys
asked = json.load(sys.stdin)
right = asked["generation"]["final_answer"] == asked["sample"]["target"]
seen = "OPENAI_API_KEY" in os.environ
print(json.dumps({"status": "success" if right else "failure", "score": right,
                  "message": str(seen)}))
"""


def test_a_program_judges_and_sees_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    feedback = evaluate(ProgramEnvironment([sys.executable, "-c", CHECK]), "a; rm -rf $HOME", "a")
    assert (feedback.status, feedback.message) == ("failure", "False")
    assert evaluate(ProgramEnvironment([sys.executable, "-c", CHECK]), "a", "a").score == 1.0


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit(3)", "exit code 3"),
        ("print('fine')", "no feedback"),
        ('print(\'{"status": "success", "score": 7}\')', "no feedback"),
    ],
)
def test_a_program_that_does_not_answer_counts_as_wrong(code: str, message: str) -> None:
    feedback = evaluate(ProgramEnvironment([sys.executable, "-c", code]), "a", "a")
    assert feedback.score == 0.0
    assert message in feedback.message


def test_a_program_is_ended_at_its_time_limit_with_all_it_started() -> None:
    code = "import subprocess; subprocess.run(['sleep', '60'])"
    begun = time.monotonic()
    feedback = evaluate(ProgramEnvironment([sys.executable, "-c", code], seconds=0.5), "a", "a")
    assert "longer than 0.5 s" in feedback.message
    assert time.monotonic() - begun < 10


def test_a_missing_program_counts_as_wrong() -> None:
    assert "could not be started" in evaluate(ProgramEnvironment(["/no/such"]), "a", "a").message


def test_the_published_rows_are_read_as_they_are() -> None:
    formula = read_samples(DATA / "formula_sample.jsonl", name="train")
    finer = read_samples(DATA / "finer_sample.jsonl", name="val")
    assert (len(formula), kind_of(formula)) == (20, "number")
    assert (len(finer), kind_of(finer)) == (4, "list")
    assert all(evaluate(NumberMatch(), row.target, row.target).score == 1 for row in formula)
    assert all(evaluate(ListMatch(), row.target, row.target).score == 1 for row in finer)
    assert formula[0].question.task.startswith("Use formula")


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[]",
        '{"target": "1"}',
        '{"question": "?"}',
        '{"question": ["?"], "target": "1"}',
    ],
)
def test_a_row_that_is_no_sample_is_named_by_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps({"question": "?", "target": 1.5}) + f"\n\n{line}\n")
    with pytest.raises(DatasetError, match="line 3"):
        read_samples(path, name="train")


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        *[("1, 2, 3", "list"), ("1,2,3", "list"), ("100, 200", "list"), ("1,5", "list")],
        *[
            ("1,234.5", "number"),
            ("-1 234", "number"),
            ("$ 12,345,678", "number"),
            ("1 2", "answer"),
        ],
    ],
)
def test_a_list_of_numbers_is_no_number(target: str, kind: str) -> None:
    assert kind_of([Sample(Question("s1", "?"), target)]) == kind


def test_a_split_is_drawn_by_the_seed_and_shares_nothing() -> None:
    rows = read_samples(DATA / "formula_sample.jsonl", name="train")
    train, val = split_samples(rows, share=0.2, seed=4)
    assert (len(train), len(val)) == (16, 4)
    assert not {s.id for s in train} & {s.id for s in val}
    assert split_samples(rows, share=0.2, seed=4) == (train, val)
    assert split_samples(rows[:1], share=0.2, seed=4) == (rows[:1], rows[:1])
