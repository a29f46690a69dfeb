"""Tasks of the benchmark: published rows, how an answer is scored, and what feedback may say.

Data as the public ACE code publishes it: JSON Lines of `context` and `target`, three files a task
(`formula_train.jsonl`, `formula_val.jsonl`, `formula_test.jsonl`). One file alone is cut in three.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from evolution.engine.adaptation.datasets import read_samples
from evolution.engine.environments import (
    MATCHES,
    Environment,
    Feedback,
    Question,
    Sample,
    Unjudged,
    evaluate_sample,
    kind_of,
    read_number,
)
from evolution.engine.generator import Generation

SPLITS = ("train", "val", "test")
SHARES = (0.4, 0.2)
"""Of one file alone: train and validation; the rest is for the test."""
T = TypeVar("T")
QUESTION = re.compile(r"^(?P<context>.*?)(?P<task>Question:.*)$", re.DOTALL)


@dataclass(frozen=True)
class Scores:
    """An answer by the published metric, and by the tolerant one of the product; each 0 to 1."""

    published: float
    tolerant: float


@dataclass(frozen=True)
class Task:
    """Rows by split. The test rows are read when they are asked for, after the fitting."""

    name: str
    paths: dict[str, Path]
    framing: str = "whole"
    limit: int | None = None

    def read(self, split: str) -> list[Sample]:
        """The rows of a split, at most `limit`. Raises DatasetError."""
        path = self.paths[split]
        samples = read_samples(path, name=split)
        if len(set(self.paths.values())) == 1:
            samples = _part(samples, split)
        return [_framed(sample, self.framing) for sample in samples[: self.limit]]

    def count(self, split: str) -> int:
        """How many rows a split has, without reading what is in them."""
        path = self.paths[split]
        rows = sum(bool(line.strip()) for line in path.read_text(encoding="utf-8-sig").split("\n"))
        if len(set(self.paths.values())) == 1:
            rows = len(_part(range(rows), split))
        return min(rows, self.limit or rows)

    def fingerprints(self) -> dict[str, str]:
        """SHA-256 of each file."""
        digests = {s: hashlib.sha256(p.read_bytes()).hexdigest() for s, p in self.paths.items()}
        return {split: digests[split] for split in SPLITS}

    @property
    def is_by_item(self) -> bool:
        """Whether a row has several items, as the tags of FiNER."""
        return self.name == "finer"

    def score(self, sample: Sample, generation: Generation | None) -> Scores:
        """No answer is wrong."""
        if generation is None:
            return Scores(0.0, 0.0)
        published = _published(self.name, sample.target, generation.final_answer)
        return Scores(published, evaluate_sample(self._tolerant(sample), sample, generation).score)

    def feedback(
        self, sample: Sample, generation: Generation | None, *, labels: bool
    ) -> Feedback | None:
        """What a method may learn from: the verdict and the answer, or nothing but that it ended.

        None without an answer.
        """
        if generation is None:
            return None
        if not labels:
            return Unjudged().evaluate(sample, generation)
        return evaluate_sample(self._tolerant(sample), sample, generation)

    def _tolerant(self, sample: Sample) -> Environment:
        kind = {"finer": "list", "formula": "number"}.get(self.name) or kind_of([sample])
        return MATCHES[kind]


def find_task(name: str, *, data: Path, framing: str, limit: int | None) -> Task:
    """`finer` and `formula` are files in the folder `data`; another name is a file of its own.

    Raises FileNotFoundError, naming what is missing.
    """
    alone = Path(name)
    if name in {"finer", "formula"}:
        paths = {split: data / f"{name}_{split}.jsonl" for split in SPLITS}
    else:
        paths = dict.fromkeys(SPLITS, alone)
    missing = [str(path) for path in paths.values() if not path.is_file()]
    if missing:
        raise FileNotFoundError(f"There is no {', '.join(dict.fromkeys(missing))}.")
    label = name if name in {"finer", "formula"} else alone.stem
    return Task(label, paths, framing, limit)


def _part(samples: Sequence[T], split: str) -> list[T]:
    first = round(len(samples) * SHARES[0])
    second = first + round(len(samples) * SHARES[1])
    bounds = {"train": (0, first), "val": (first, second), "test": (second, len(samples))}
    start, end = bounds[split]
    return list(samples[start:end])


def _framed(sample: Sample, framing: str) -> Sample:
    """`published`: instructions as context and the question as task; `whole`: all is the task."""
    found = QUESTION.match(sample.question.task)
    if framing != "published" or found is None:
        return sample
    question = Question(sample.id, found["task"].strip(), found["context"].strip())
    return replace(sample, question=question)


def _published(name: str, target: str, answer: str) -> float:
    """FiNER: the share of tags that are equal in their place; Formula: one equal float."""
    if name == "finer":
        return _equal_tags(target, answer)
    if name == "formula":
        return _equal_float(target, answer)
    return float(target.strip() == answer.strip())


def _equal_tags(wanted: str, given: str) -> float:
    tags = [tag.strip().lower() for tag in wanted.split(",")]
    found = [tag.strip().lower() for tag in given.split(",")]
    return sum(one == other for one, other in zip(tags, found, strict=False)) / len(tags)


def _equal_float(wanted: str, given: str) -> float:
    """As published: commas and dollar signs are removed, then both must be one float."""
    try:
        number = float(given.replace(",", "").replace("$", "").strip())
    except ValueError:
        return 0.0
    target = read_number(wanted)
    return float(target is not None and float(target) == number)
