"""Data sets: JSON Lines of `context`/`question` and `target`, split and ordered by a seed."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from evolution.engine.environments import Question, Sample
from evolution.engine.prompt_text import clean_text

MAX_CHARS = 100_000


class DatasetError(ValueError):
    """The file is no data set; the text names the line and what to do."""


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=False, coerce_numbers_to_str=True)

    context: str = ""
    question: str = ""
    target: str = ""


def read_samples(path: Path, *, name: str, need_target: bool = True) -> list[Sample]:
    """The samples of a JSON Lines file, with ids `<name>.00001` by line; raises DatasetError.

    A row with only a `context` is a whole task, as the published finance data has it.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path} cannot be read: {error}.") from None
    return parse_samples(text, name=name, source=str(path), need_target=need_target)


def parse_samples(text: str, *, name: str, source: str, need_target: bool = True) -> list[Sample]:
    """The samples of a text as `read_samples` reads them; `source` is its name in errors."""
    samples = [
        _sample(line, f"{name}.{number:05d}", f"{source}, line {number}", need_target)
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]
    if not samples:
        raise DatasetError(f"{source} has no samples.")
    return samples


def _sample(line: str, sample_id: str, place: str, need_target: bool) -> Sample:
    try:
        row = _Row.model_validate(json.loads(line))
    except (ValueError, RecursionError, ValidationError):
        raise DatasetError(
            f"{place}: write a JSON object with `context` or `question`, and `target`."
        ) from None
    question, context = clean_text(row.question), clean_text(row.context)
    target = clean_text(row.target)
    if not (question.strip() or context.strip()):
        raise DatasetError(f"{place}: it has neither `question` nor `context`.")
    if need_target and not target.strip():
        raise DatasetError(f"{place}: it has no `target`.")
    if len(question) + len(context) > MAX_CHARS:
        raise DatasetError(f"{place}: the task is longer than {MAX_CHARS:,} characters.")
    if not question.strip():
        question, context = context, ""
    return Sample(Question(sample_id, question, context), target)


def split_samples(
    samples: Sequence[Sample], *, share: float, seed: int
) -> tuple[list[Sample], list[Sample]]:
    """Training and validation samples, drawn by the seed; both in the file's order.

    With fewer than two samples, or a share of 0, the training samples validate as well.
    """
    if len(samples) < 2 or share <= 0:
        return list(samples), list(samples)
    count = min(max(1, round(len(samples) * share)), len(samples) - 1)
    drawn = set(_random(seed, "split").sample(range(len(samples)), count))
    train = [sample for number, sample in enumerate(samples) if number not in drawn]
    return train, [samples[number] for number in sorted(drawn)]


def batches(samples: Sequence[Sample], *, size: int, seed: int, epoch: int) -> list[list[Sample]]:
    """One epoch's samples in an order of its own, in batches of `size`; the last may be smaller."""
    order = list(samples)
    _random(seed, f"epoch {epoch}").shuffle(order)
    return [order[start : start + size] for start in range(0, len(order), size)]


def _random(seed: int, purpose: str) -> random.Random:
    return random.Random(f"{seed} {purpose}")  # noqa: S311 - an order to repeat, no secret
