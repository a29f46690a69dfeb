"""Similar texts: near-duplicates by spelling, and ranking by shared words."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from playbooks.document.similarity import (
    WordIndex,
    content_words,
    with_same_advice,
)

DATA = Path(__file__).parents[1] / "data"
PAIRS = DATA / "bullet_pairs.jsonl"

WORDS = (
    "each",
    "Every",
    "don't",
    "not",
    "`Not`",
    "CAN’T",
    "cannot",
    "tests",
    "the",
    "Straße",
    "'K'",
)
PHRASES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)


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
