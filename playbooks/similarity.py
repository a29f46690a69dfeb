"""Near-duplicates among bullets, by spelling: no model, no network."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from rapidfuzz import fuzz, process

# Share of equal letters (words sorted) in percent from which two bullets say the same.
DEFAULT_THRESHOLD = 90.0
_CANDIDATES = 5
# Words that turn advice around, numbers and signs: texts that differ in one of them are not
# similar, however many letters they share.
_TURNS = re.compile(
    r"\d+(?:[.,]\d+)*|[<>=!]+|n't\b|"
    r"\b(?:no|not|never|cannot|without|avoid|except|unless|before|after|"
    r"first|last|min|max|minimum|maximum|less|more|fewer|true|false)\b"
)


class Similar(NamedTuple):
    id: str
    score: float  # percent, one decimal


def find_similar(
    text: str, known: Mapping[str, str], *, threshold: float = DEFAULT_THRESHOLD
) -> Similar | None:
    """The most similar of the `known` normalised texts by id, at or above `threshold` percent.

    About 1 ms for 1,000 texts.
    """
    found = process.extract(
        text, known, scorer=fuzz.token_sort_ratio, score_cutoff=threshold, limit=_CANDIDATES
    )
    turns = sorted(_TURNS.findall(text))
    for other, score, bullet_id in found:
        if sorted(_TURNS.findall(other)) == turns:
            return Similar(bullet_id, round(score, 1))
    return None
