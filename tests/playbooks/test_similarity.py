"""Similar texts: near-duplicates by spelling, and ranking by shared words."""

import json
import random
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from playbooks.document.similarity import (
    WordIndex,
    alike_pairs,
    content_words,
    similar_pairs,
    with_same_advice,
)
from playbooks.document.text import normal_text

DATA = Path(__file__).parents[1] / "data"
PAIRS = DATA / "bullet_pairs.jsonl"

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
    ("one", "other"),
    [
        ("Convert euros to dollars.", "Convert dollars to euros."),
        ("Copy staging to production.", "Copy production to staging."),
        ("Use LEFT JOIN for notes.", "Use INNER JOIN for notes."),
        ("The timeout is in seconds.", "The timeout is in milliseconds."),
        ("Take the second value.", "Take the seconds value."),
        ("Drop it with `git branch -d`.", "Drop it with `git branch -D`."),
        ("Join on `user` by id.", "Join on `users` by id."),
        ("Plan A covers refunds.", "The plan covers refunds."),
        ("Set c = a - b.", "Set c = b - a."),
        ("A rate of .5 is used.", "A rate of 5 is used."),
        ("Retry if any shard answers.", "Retry if all shards answer."),
    ],
)
def test_opposites_are_never_the_same_whatever_reason_they_share(one: str, other: str) -> None:
    shared = " Otherwise the nightly report of the finance team has to be made by hand again."
    assert content_words(one) != content_words(other)
    assert content_words(one + shared) != content_words(other + shared)
    assert normal_text(one) != normal_text(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Check the total.", "check a total"),
        ("Validate the CSV header before any row.", "Validate CSV headers before any rows."),
        ("Don't cache rates.", "Do not cache the rates!"),
        ("Close it after each request.", "Close it after every request."),
    ],
)
def test_articles_plurals_and_case_do_not_matter(one: str, other: str) -> None:
    assert content_words(one) == content_words(other)


def test_of_the_pairs_written_by_hand_no_different_one_is_the_same() -> None:
    pairs = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    merged = [p["kind"] for p in pairs if content_words(p["a"]) == content_words(p["b"])]
    assert merged == ["typo", "typo"]
    unseen = [p for p in pairs if p["same"] and not alike_pairs({"a": p["a"], "b": p["b"]})]
    assert unseen == []


def test_lessons_about_different_things_are_not_put_before_the_judge() -> None:
    rows = (DATA / "rules_corpus.jsonl").read_text(encoding="utf-8").splitlines()
    said = [lesson for row in rows for lesson in json.loads(row)["lessons"]]
    assert len(alike_pairs(dict(enumerate(said)))) <= len(said) // 20  # type: ignore[arg-type]


@pytest.mark.parametrize("part", ["`", "'", "a ", "n't ", ".", "A. ", "x\u0301", "\u0300"])
def test_hostile_texts_cost_no_time(part: str) -> None:
    text = (part * 20_000)[:20_000]
    began = time.process_time()
    content_words(text)
    alike_pairs({"a": text, "b": text[1:]})
    assert time.process_time() - began < 0.25


ADVICE = ("each", "Every", "don't", "not", "`Not`", "CAN’T", "cannot", "tests", "Straße", "'K'")
PHRASES = st.lists(st.sampled_from(ADVICE), min_size=1, max_size=4).map(" ".join)


@given(st.lists(PHRASES, min_size=2, max_size=9))
def test_the_same_advice_is_found_as_by_looking_at_every_text(texts: list[str]) -> None:
    by_id = [(str(place), text) for place, text in enumerate(texts)]
    for advice in (texts[:1], texts[:2]):
        wanted = [content_words(text) for text in advice]
        same = [key for key, text in by_id if content_words(text) in wanted]
        assert list(with_same_advice(by_id, advice)) == same


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    index = WordIndex({"a": "check the sum", "b": "check the amortisation", "c": "check it all"})
    assert index.rank("Check amortised costs: the amortization.")[0] == "b"


def test_a_query_without_a_known_word_finds_nothing() -> None:
    assert WordIndex({"a": "check the sum"}).rank("quite something else") == []
