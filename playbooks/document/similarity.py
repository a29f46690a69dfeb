"""Similarity of bullets by spelling and by shared words: no model, no network."""

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from rapidfuzz import fuzz, process

# Share of equal letters (words sorted), in percent, from which two bullets are duplicates.
DEFAULT_THRESHOLD = 90.0
_CANDIDATES = 5
# Words that turn advice around, numbers and signs: texts that differ in one of them are not
# similar, however many letters they share.
_CRITICAL_WORDS = re.compile(
    r"\d+(?:[.,]\d+)*|[<>=!]+|n't\b|"
    r"\b(?:no|not|never|cannot|without|avoid|except|unless|before|after|"
    r"first|last|min|max|minimum|maximum|less|more|fewer|true|false)\b"
)


# Inflections of a word share its first letters: "percent", "percentage", "percentages".
_STEM = re.compile(r"[^\W_]{3,6}|\d+")
_WORD = re.compile(r"[^\W_]{3,}|\d+")


class Similar(NamedTuple):
    id: str
    score: float  # percent, one decimal


class SimilarPair(NamedTuple):
    """Two ids, in the order in which their texts came."""

    first: str
    second: str
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
    for other, score, bullet_id in found:
        if have_same_critical_words(text, other):
            return Similar(bullet_id, round(score, 1))
    return None


def have_same_critical_words(text: str, other: str) -> bool:
    """True when both normalised texts have the same numbers, signs and words that turn advice."""
    return sorted(_CRITICAL_WORDS.findall(text)) == sorted(_CRITICAL_WORDS.findall(other))


def similar_pairs(texts: Mapping[str, str], *, threshold: float) -> list[SimilarPair]:
    """Every pair of the normalised texts by id at or above `threshold` percent, best first.

    About 0.1 s for 1,000 texts, all pairs of them.
    """
    places = {key: place for place, key in enumerate(texts)}
    spelled = {key: " ".join(sorted(text.split())) for key, text in texts.items()}
    # By length: a text that is much longer cannot be similar enough, and is not even looked at.
    ids = sorted(spelled, key=lambda key: len(spelled[key]))
    sorted_texts = [spelled[key] for key in ids]
    lengths = [len(text) for text in sorted_texts]
    found: list[SimilarPair] = []
    for place, (key, text) in enumerate(zip(ids, sorted_texts, strict=True), start=1):
        end = bisect_right(lengths, len(text) * (200 - threshold) / threshold, lo=place)
        for _, score, offset in process.extract_iter(
            text, sorted_texts[place:end], scorer=fuzz.ratio, score_cutoff=threshold
        ):
            first, second = sorted((key, ids[place + offset]), key=places.__getitem__)
            found.append(SimilarPair(first, second, round(score, 1)))
    return sorted(found, key=lambda pair: (-pair.score, places[pair.first], places[pair.second]))


class WordIndex:
    """Ranks `texts` (by id) by the words that they share with a query.

    Rare words weigh more than common ones. Deterministic: ties keep the
    order of the texts.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._words = {key: _stems(text) for key, text in texts.items()}
        common = Counter(stem for stems in self._words.values() for stem in stems)
        self._weights = {stem: math.log(1 + len(texts) / n) for stem, n in common.items()}

    def rank(self, query: str) -> list[str]:
        """The ids of the texts that share a word with the query, the closest first."""
        asked = _stems(query)
        scores = {
            key: sum(self._weights[stem] for stem in sorted(stems & asked)) / math.sqrt(len(stems))
            for key, stems in self._words.items()
            if not stems.isdisjoint(asked)
        }
        return sorted(scores, key=lambda key: -scores[key])


def _stems(text: str) -> frozenset[str]:
    found = (_STEM.match(word) for word in _WORD.findall(text.casefold()))
    return frozenset(stem.group() for stem in found if stem)
