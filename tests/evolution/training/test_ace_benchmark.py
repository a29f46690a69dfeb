"""The paper's table in a world where the true order of methods is known."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from benchmarks.quality import report, runner
from benchmarks.quality.memory_playbook import connect
from benchmarks.quality.recording import Spending
from benchmarks.quality.statistics import compare, half_width, mcnemar
from benchmarks.quality.tasks import Task, find_task
from evolution.engine.adaptation.protocols import CheckpointMismatch
from evolution.engine.environments import Sample
from evolution.engine.generator import Generation
from evolution.engine.llm import LLMError
from tests.harness.fake_llm.answers import Messages, role_of
from tests.harness.fake_llm.learning import FACT, TASK, WORTH, LearningLLM, fact

MODELS = {"generator": "gpt-4o-mini", "reflector": "gpt-4o-mini", "curator": "gpt-4o-mini"}
DEMONSTRATION = re.compile(r"Turn (\d+) (\w+) into crowns\.\s+Answer: (\d+)")
RIGHT = re.compile(r"Turn (\d+) (\w+) into crowns.{0,400}?Right answer: (\d+)", re.DOTALL)
SHEET_FACTS, GEPA_FACTS = 5, 2
"""What the world's forgetful curator and reflection model keep: fewer than ACE's bullets."""


class World(LearningLLM):
    """Also answers with demonstrations, a cheatsheet, and the text that GEPA evolves."""

    def answer(self, messages: Messages) -> dict[str, Any]:
        prompt, role = messages[1]["content"], role_of(messages)
        if role == "generator":
            return _answered(prompt)
        if role == "cheatsheet":
            return {"cheatsheet": _facts(prompt, SHEET_FACTS)}
        if role == "gepa":
            text = f"```\n{_facts(prompt, GEPA_FACTS)}\n```"
            return {"text": text}
        return super().answer(messages)


def _answered(prompt: str) -> dict[str, Any]:
    memory, _, asked = prompt.partition("END PLAYBOOK")
    amount, unit = TASK.findall(asked)[-1]
    shown = {
        name: int(total) // int(number) for number, name, total in DEMONSTRATION.findall(memory)
    }
    shown |= {name: int(worth) for name, worth in FACT.findall(memory)}
    total = int(amount) * shown.get(unit, 1)
    return {"reasoning": "", "final_answer": str(total), "bullet_ids": []}


def _facts(prompt: str, most: int) -> str:
    known = {name: int(worth) for name, worth in FACT.findall(prompt)}
    for number, unit, total in RIGHT.findall(prompt):
        known.pop(unit, None)
        known[unit] = int(total) // int(number)
    kept = [(unit, worth) for unit, worth in known.items() if worth > 1][-most:]
    return "\n".join(fact(unit, worth) for unit, worth in kept) or "Nothing is known yet."


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with World() as llm:
        yield llm


@pytest.fixture
def plan(tmp_path: Path) -> runner.Plan:
    """The stream of test rows comes back to units after five and after fifteen others."""
    first, second = list(WORTH)[:5], list(WORTH)[5:]
    orders = {
        "train": [*first, *second] * 2,
        "val": [*first, *second],
        "test": [*first, *first, *second, *second, *first, *second],
    }
    for split, units in orders.items():
        amounts = range(len(split) * 100, len(split) * 100 + len(units))
        rows = [
            {"question": f"Turn {amount} {unit} into crowns.", "target": str(amount * WORTH[unit])}
            for amount, unit in zip(amounts, units, strict=True)
        ]
        lines = (json.dumps(row) for row in rows)
        (tmp_path / f"formula_{split}.jsonl").write_text("\n".join(lines))
    task = find_task("formula", data=tmp_path, framing="whole", limit=None)
    return runner.Plan(
        task=task,
        methods=("base", "icl", "gepa", "dc", "ace"),
        modes=("offline", "online"),
        labels=("with",),
        seeds=(0,),
        models=MODELS,
        gepa_calls=40,
    )


def price(model: str, sent: int, received: int) -> Decimal:
    return Decimal(sent + 4 * received) / 1_000_000


def run(plan: runner.Plan, folder: Path, world: World, **options: Any) -> dict[str, bytes]:
    """The written files of a run, by name."""
    folder.mkdir(exist_ok=True)
    results = runner.run(
        plan,
        folder=folder,
        connect=lambda ledger: connect(world.base_url, "key", ledger),
        price=price,
        tell=lambda line: None,
        **options,
    )
    report.write(folder, plan, results)
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if path.suffix != ".jsonl"
    } | {"per_sample.jsonl": (folder / "per_sample.jsonl").read_bytes()}


@pytest.mark.nightly  # by day the next one
def test_the_table_finds_the_true_order_interrupted_or_not(
    plan: runner.Plan, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.quality.methods.ICL_TOKENS", 60)
    monkeypatch.setattr(os, "fsync", lambda number: None)
    whole = run(plan, tmp_path / "whole", world)
    rows = json.loads(whole["results.json"])["rows"]
    found = {(row["method"], row["mode"]): row for row in rows}
    offline = [found[(name, "offline")]["accuracy"] for name in ("base", "icl", "gepa", "ace")]
    assert offline[0] == 20.0
    assert offline[0] < min(offline[1], offline[2])
    assert max(offline[1:3]) < offline[3] == 100.0
    online = [found[(name, "online")]["accuracy"] for name in ("dc", "ace")]
    assert offline[0] < online[0] < online[1]
    proven = found[("ace", "offline")]["against_base"]
    assert proven["low"] > 0 and proven["p"] < 0.001
    # The budget ends it in the middle, twice; then it goes on to the end.
    folder, spent = tmp_path / "broken", Decimal("0.01")
    for limit in (spent, 2 * spent):
        with pytest.raises(LLMError, match="could exceed the limit"):
            run(plan, folder, world, limit=limit)
    with (folder / "calls.jsonl").open("a") as file:
        file.write('\n{"key": "torn')
    asked = world.count()
    assert run(plan, folder, world) == whole
    assert 0 < world.count() - asked < sum(row["scoring"]["calls"] for row in rows) * 3
    # The marks of data blocks are drawn anew, and yet nothing is asked twice.
    asked = world.count()
    assert run(plan, folder, world) == whole
    assert world.count() == asked


def test_an_interrupted_run_ends_as_a_whole_one(
    plan: runner.Plan, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda number: None)
    plan = replace(plan, methods=("base", "ace"), modes=("offline",))
    whole = run(plan, tmp_path / "whole", world)
    rows = json.loads(whole["results.json"])["rows"]
    assert [row["accuracy"] for row in rows] == [20.0, 100.0]
    with pytest.raises(LLMError, match="could exceed the limit"):
        run(plan, tmp_path / "broken", world, limit=Decimal("0.01"))
    with (tmp_path / "broken" / "calls.jsonl").open("a") as file:
        file.write('\n{"key": "torn')
    asked = world.count()
    assert run(plan, tmp_path / "broken", world) == whole
    assert 0 < world.count() - asked < sum(row["scoring"]["calls"] for row in rows) * 3


def test_a_folder_belongs_to_one_plan(plan: runner.Plan, world: World, tmp_path: Path) -> None:
    small = runner.Plan(
        task=plan.task,
        methods=("base",),
        modes=("offline",),
        labels=("with",),
        seeds=(0,),
        models=MODELS,
    )
    run(small, tmp_path / "out", world)
    for name, value in {"seeds": (1,), "options": {"*": {"temperature": 1}}}.items():
        other = runner.Plan(**{**vars(small), name: value})
        with pytest.raises(CheckpointMismatch, match=f"another {name}"):
            run(other, tmp_path / "out", world)


def test_the_test_rows_are_read_after_the_fitting(
    plan: runner.Plan, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = list[str]()
    reading = Task.read

    def noted(task: Task, split: str) -> list[Sample]:
        read.append(split)
        return reading(task, split)

    monkeypatch.setattr(Task, "read", noted)
    cell = runner.Plan(**{**vars(plan), "methods": ("ace",), "modes": ("offline",), "seeds": (0,)})
    folder = tmp_path / "order"
    fitted = world.count("curator")
    run(cell, folder, world)
    assert read == ["train", "val", "test"]
    assert world.count("curator") > fitted


def test_the_estimate_comes_before_the_first_call(plan: runner.Plan) -> None:
    found = runner.estimate(plan, price)
    assert found["rows"] == {"train": 20, "val": 10, "test": 30}
    assert found["calls"] > 20 * found["cells"]
    assert Decimal(found["dollars"]) > 0


@pytest.mark.parametrize(
    ("task", "target", "answer", "published", "tolerant"),
    [
        ("formula", "15.0", "15.00", 1.0, 1.0),
        ("formula", "15.0", "15%", 0.0, 1.0),
        ("formula", "15.0", "$1,500", 0.0, 0.0),
        ("finer", "Goodwill,Revenues", "goodwill, Assets", 0.5, 0.5),
        ("finer", "Goodwill,Revenues", "Goodwill", 0.5, 0.5),
    ],
)
def test_an_answer_is_scored_as_published_and_as_the_product_does(
    tmp_path: Path, task: str, target: str, answer: str, published: float, tolerant: float
) -> None:
    for split in ("train", "val", "test"):
        row = json.dumps({"context": "Which?", "target": target})
        (tmp_path / f"{task}_{split}.jsonl").write_text(row)
    found = find_task(task, data=tmp_path, framing="published", limit=None)
    sample = found.read("test")[0]
    scores = found.score(sample, Generation(final_answer=answer))
    assert (scores.published, scores.tolerant) == (published, tolerant)
    assert found.score(sample, None).tolerant == 0.0


def test_published_framing_separates_the_question(tmp_path: Path) -> None:
    row = {"context": 'Use formula X. Question: "What is 2?" Answer:', "target": "2"}
    path = tmp_path / "own.jsonl"
    path.write_text("\n".join([json.dumps(row)] * 5))
    task = find_task(str(path), data=tmp_path, framing="published", limit=None)
    question = task.read("train")[0].question
    assert question.context == "Use formula X."
    assert question.task.startswith("Question:")
    assert [task.count(split) for split in ("train", "val", "test")] == [2, 1, 2]
    assert len(task.read("test")) == 2


def test_whatever_the_order_of_labels_the_base_is_compared_with(plan: runner.Plan) -> None:
    ordered = runner.Plan(**{**vars(plan), "methods": ("base", "ace"), "modes": ("offline",)})
    ordered = runner.Plan(**{**vars(ordered), "labels": ("without", "with")})
    row, spent = {"sample": "a", "answer": "1", "published": 1.0, "tolerant": 1.0}, Spending()
    found = [
        runner.CellResult(cell, [row], spent.as_dict(), spent.as_dict()) for cell in ordered.cells()
    ]
    compared = [
        one["method"] for one in report.summarize(ordered, found)["rows"] if "against_base" in one
    ]
    assert compared == ["ace", "ace"]


def test_statistics_against_known_figures() -> None:
    gained, lost = [(True, False)] * 9, [(False, True)]
    assert mcnemar([*gained, *lost, (True, True)]) == pytest.approx(0.02148, abs=1e-4)
    assert mcnemar([(True, True)]) == 1.0
    assert half_width(0.75, 200) == pytest.approx(5.96, abs=0.01)
    assert half_width(0.0, 6) == pytest.approx(19.5, abs=0.1)
    same = compare([1.0, 0.0] * 50, [1.0, 0.0] * 50, is_binary=True)
    assert (same.difference, same.low, same.high, same.p) == (0.0, 0.0, 0.0, 1.0)


@pytest.fixture
def command(db: None, plan: runner.Plan, world: World, settings: Any, tmp_path: Path) -> list[str]:
    settings.ACE_ENGINE, settings.OPENAI_API_KEY = "openai", "key"
    settings.OPENAI_BASE_URL = world.base_url
    folder = plan.task.paths["train"].parent
    return ["--task=formula", f"--data={folder}", f"--out={tmp_path / 'cli'}"]


def test_the_command_writes_the_table(command: list[str], world: World, tmp_path: Path) -> None:
    asked, out = world.count(), StringIO()
    call_command("ace_benchmark", *command, "--dry-run", stderr=out)
    assert (json.loads(out.getvalue())["cells"], world.count()) == (6, asked)
    call_command("ace_benchmark", *command, "--methods=base", "--limit=2", stdout=out)
    assert "| Base model | offline | with |" in out.getvalue()
    assert {path.name for path in (tmp_path / "cli").iterdir()} == {
        *("calls.jsonl", "plan.json", "results.json", "per_sample.jsonl", "table.md", "chart.svg")
    }
    with pytest.raises(CommandError, match="add --resume"):
        call_command("ace_benchmark", *command, "--methods=base", "--limit=2")
    asked = world.count()
    call_command(
        "ace_benchmark", *command, "--methods=base", "--limit=2", "--resume", stdout=StringIO()
    )
    assert world.count() == asked


def test_the_command_says_what_is_missing(command: list[str], settings: Any) -> None:
    with pytest.raises(CommandError, match=r"There is no .*finer_train"):
        call_command("ace_benchmark", *command, "--task=finer")
    settings.ACE_GENERATOR_MODEL = "home-made"
    with pytest.raises(CommandError, match="No price is known for home-made.*price override"):
        call_command("ace_benchmark", *command, "--max-cost-usd=1", stderr=StringIO())
    settings.ACE_ENGINE = "rules"
    with pytest.raises(CommandError, match="needs a model"):
        call_command("ace_benchmark", *command)
