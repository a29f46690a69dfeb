"""Runs the cells of the table: each method, mode, kind of feedback and seed on one task."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from benchmarks.quality.cheatsheet import DynamicCheatsheet
from benchmarks.quality.gepa_method import Gepa
from benchmarks.quality.methods import (
    Ace,
    Base,
    InContext,
    Method,
    Setting,
    answer_all,
    observations,
)
from benchmarks.quality.recording import (
    BudgetLedger,
    CallStore,
    Connect,
    RecordedLLM,
)
from benchmarks.quality.tasks import Task
from evolution.engine.adaptation.protocols import CheckpointMismatch
from evolution.engine.cost_budget import Budget, Price
from evolution.engine.environments import Sample
from playbooks.document.text import estimate_tokens

METHODS: dict[str, Callable[[Setting], Method]] = {
    "base": Base,
    "icl": InContext,
    "gepa": Gepa,
    "dc": DynamicCheatsheet,
    "ace": Ace,
}
OFFLINE, ONLINE = ("base", "icl", "gepa", "ace"), ("dc", "ace")
"""As in the paper: who is fitted before the test, and who learns on the stream of test rows."""
PROMPT_TOKENS, ANSWER_TOKENS = 900, 300
"""Fixed instructions of a role, and a usual answer, for the estimate."""


@dataclass(frozen=True)
class Cell:
    """One run of one method. `labels` is with or without."""

    method: str
    mode: str
    labels: str
    seed: int

    def __str__(self) -> str:
        return f"{self.method}/{self.mode}/{self.labels}/{self.seed}"


@dataclass(frozen=True)
class Plan:
    """What the command was asked for: a resumed run has to repeat it."""

    task: Task
    methods: tuple[str, ...]
    modes: tuple[str, ...]
    labels: tuple[str, ...]
    seeds: tuple[int, ...]
    models: dict[str, str]
    epochs: int = 1
    gepa_calls: int = 150
    concurrency: int = 8
    options: Mapping[str, Any] = field(default_factory=dict)
    """ACE_MODEL_OPTIONS: another temperature gives other answers."""

    def cells(self) -> list[Cell]:
        """Cells of this plan. Base and ICL have no use for feedback: they run once a seed."""
        found = []
        for mode, method, labels, seed in product(
            self.modes, self.methods, self.labels, self.seeds
        ):
            fits = method in (OFFLINE if mode == "offline" else ONLINE)
            needs_labels = method in {"base", "icl", "gepa"} and labels == "without"
            if fits and not (needs_labels and "with" in self.labels):
                found.append(Cell(method, mode, labels, seed))
        return found

    def as_dict(self) -> dict[str, Any]:
        """Options, models and hashes of the data, for results.json and to check a resume."""
        kept = ("methods", "modes", "labels", "seeds", "models", "options", "epochs", "gepa_calls")
        named = {name: getattr(self, name) for name in kept}
        data = {"name": self.task.name, "framing": self.task.framing, "limit": self.task.limit}
        plan = named | {"task": data | {"sha256": self.task.fingerprints()}}
        return dict(json.loads(json.dumps(plan)))


@dataclass
class CellResult:
    """The rows of one cell: by sample id the answer and its scores; and what it cost."""

    cell: Cell
    rows: list[dict[str, Any]] = field(default_factory=list)
    adapting: dict[str, Any] = field(default_factory=dict)
    scoring: dict[str, Any] = field(default_factory=dict)
    size: dict[str, int] = field(default_factory=dict)


def estimate(plan: Plan, price: Price) -> dict[str, Any]:
    """Calls, tokens and dollars that the plan may need, before the first call: a rough bound."""
    counts = {split: plan.task.count(split) for split in ("train", "val", "test")}
    sample = max(estimate_tokens(one.question.as_text()) for one in plan.task.read("train"))
    calls = sum(_calls(plan, cell, counts) for cell in plan.cells())
    sent, received = calls * (PROMPT_TOKENS + 3 * sample), calls * ANSWER_TOKENS
    cost = price(plan.models["generator"], sent, received)
    return {
        "cells": len(plan.cells()),
        "rows": counts,
        "calls": calls,
        "tokens": sent + received,
        "dollars": None if cost is None else str(cost),
    }


def _calls(plan: Plan, cell: Cell, counts: dict[str, int]) -> int:
    test = counts["test"]
    if cell.mode == "online":
        return 2 * test if cell.method == "dc" else test + test + test // 5 + 1
    if cell.method == "gepa":
        return test + plan.gepa_calls + plan.gepa_calls // 5
    if cell.method == "ace":
        learnt = plan.epochs * counts["train"]
        scorings = 1 + plan.epochs * -(-counts["train"] // 25)
        return test + 2 * learnt + learnt // 5 + scorings * counts["val"]
    return test


def run(
    plan: Plan,
    *,
    folder: Path,
    connect: Connect,
    price: Price,
    limit: Any = None,
    tell: Callable[[str], None] = print,
) -> list[CellResult]:
    """Run every cell in order; stored answers are not asked again. Raises LLMError, which a later
    run with the same folder continues from, and CheckpointMismatch for another plan.
    """
    _bind(folder / "plan.json", plan.as_dict())
    store = CallStore(folder / "calls.jsonl")
    budget = Budget(limit=limit, price=price, spent=store.dollars) if limit is not None else None
    inner = connect(BudgetLedger(budget, price))
    results = []
    for cell in plan.cells():
        tell(f"{plan.task.name} {cell}, {len(store)} answers stored")
        llm = RecordedLLM(inner, store, f"{plan.task.name}/{cell}", price)
        results.append(_run_cell(plan, cell, llm))
    return results


def _run_cell(plan: Plan, cell: Cell, llm: RecordedLLM) -> CellResult:
    setting = Setting(
        task=plan.task,
        llm=llm,
        models=plan.models,
        labels=cell.labels == "with",
        seed=cell.seed,
        epochs=plan.epochs,
        gepa_calls=plan.gepa_calls,
        concurrency=plan.concurrency,
    )
    method, result = METHODS[cell.method](setting), CellResult(cell)
    if cell.mode == "offline":
        method.fit(plan.task.read("train"), plan.task.read("val"))
    # From here on test rows are read: offline nothing is learnt any more, online after its score.
    test = plan.task.read("test")
    for window in _windows(test, method.window if cell.mode == "online" else len(test)):
        llm.phase = "score"
        found = answer_all(method, window, plan.concurrency)
        result.rows += [_row(plan.task, sample, found[sample.id]) for sample in window]
        if cell.mode == "online":
            llm.phase = "fit"
            method.observe(observations(setting, window, found))
    result.adapting = llm.spending["fit"].as_dict()
    result.scoring = llm.spending["score"].as_dict()
    result.size = getattr(method, "size", {})
    return result


def _windows(samples: Sequence[Sample], size: int) -> Iterator[Sequence[Sample]]:
    for start in range(0, len(samples), size):
        yield samples[start : start + size]


def _row(task: Task, sample: Sample, generation: Any) -> dict[str, Any]:
    """Unanswered counts as wrong, and is counted apart."""
    return {
        "sample": sample.id,
        "answer": generation.final_answer if generation else None,
        **asdict(task.score(sample, generation)),
    }


def _bind(path: Path, plan: dict[str, Any]) -> None:
    """Keep a folder to one plan; raises CheckpointMismatch."""
    if path.exists():
        stored = json.loads(path.read_text(encoding="utf-8"))
        other = sorted(name for name in plan if stored.get(name) != plan[name])
        if other:
            raise CheckpointMismatch(
                f"{path.parent} is of a run with another {', '.join(other)}. Name a new folder."
            )
        return
    path.write_text(json.dumps(plan, indent=2, sort_keys=True) + "\n", encoding="utf-8")
