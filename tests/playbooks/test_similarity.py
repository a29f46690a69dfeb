"""Similar texts: near-duplicates by spelling, and ranking by shared words."""

import random

import pytest
from rapidfuzz import fuzz

from playbooks.document.similarity import (
    WordIndex,
    find_similar,
    have_same_critical_words,
    similar_pairs,
)

WORDS = [
    "check",
    "the",
    "sum",
    "of",
    "parts",
    "total",
    "before",
    "answer",
    "rate",
    "year",
    "sign",
    "unit",
    "round",
    "last",
    "step",
]


def texts(count: int) -> dict[str, str]:
    draw = random.Random(count)
    return {f"t{n}": " ".join(draw.choices(WORDS, k=draw.randint(3, 12))) for n in range(count)}


@pytest.mark.parametrize("threshold", [60.0, 72.0, 90.0])
def test_similar_pairs_equal_a_comparison_of_all_pairs(threshold: float) -> None:
    known = texts(60)
    expected = {
        (one, other)
        for number, one in enumerate(known)
        for other in list(known)[number + 1 :]
        if fuzz.token_sort_ratio(known[one], known[other]) >= threshold
    }
    pairs = similar_pairs(known, threshold=threshold)
    assert {(pair.first, pair.second) for pair in pairs} == expected
    assert [pair.score for pair in pairs] == sorted((p.score for p in pairs), reverse=True)


def test_the_order_of_words_does_not_matter() -> None:
    (pair,) = similar_pairs({"a": "check the sum", "b": "the sum check"}, threshold=90)
    assert pair == ("a", "b", 100.0)


def test_an_empty_playbook_has_no_pairs() -> None:
    assert similar_pairs({}, threshold=72) == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("use 365 days", "use 360 days", False),
        ("round up", "never round up", False),
        ("a < b", "a > b", False),
        ("check a before b", "check a after b", False),
        ("check the totals", "check all totals", True),
    ],
)
def test_numbers_signs_and_negations_matter(one: str, other: str, same: bool) -> None:
    assert have_same_critical_words(one, other) is same
    assert (find_similar(one, {"x": other}, threshold=50) is not None) is same


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    index = WordIndex({"a": "check the sum", "b": "check the amortisation", "c": "check it all"})
    assert index.rank("Check amortised costs: the amortization.")[0] == "b"


def test_a_query_without_a_known_word_finds_nothing() -> None:
    assert WordIndex({"a": "check the sum"}).rank("quite something else") == []
