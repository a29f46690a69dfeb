"""What counts as the same advice, and which bullets look alike: no model, no network."""

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, combinations
from typing import NamedTuple

from rapidfuzz import fuzz, process
from rapidfuzz.distance import Indel

SPELLING = 72.0
"""Percent of equal letters (words sorted) from which two bullets look alike."""
SHARED_WORDS = 50.0
"""Percent of equal content words, in any order, from which they do too."""
_ARTICLES = frozenset({"a", "an", "the"})
_QUOTES, _ENDS = "\"'`“”‘’«»()[]{}", "\"'`“”‘’«»()[]{}.,;:!?…"
# Plurals that mean something else than the word without its last letter.
_NO_PLURAL = re.compile(r".*(?:ss|[aiou]s)|news|means|seconds|series|always")
# Words that say how, when or whether rather than what: they never make two bullets look alike.
_FUNCTION = """
a an the of to in on at for is are was be and or as it its so that this than then with by from you
your not do don never always must should before after when if every each any all no only without
who which has have
"""
_FUNCTION_WORDS = frozenset(_FUNCTION.split())

_TURNING = """
not never no without only avoid instead before after unless except always stop skip
"""
TURNING = frozenset(_TURNING.split())
"""Words that turn advice around, or say when it holds."""
KEPT_WORDS = 0.7
_DIGIT = re.compile(r"\d")

# Inflections of a word share its first letters: "percent", "percentage", "percentages".
_STEM = re.compile(r"[^\W_]{3,6}|\d+")
_WORD = re.compile(r"[^\W_]{3,}|\d+")


class SimilarPair(NamedTuple):
    """Two ids, in the order in which their texts came."""

    first: str
    second: str
    score: float  # percent, one decimal


def content_words(text: str) -> tuple[str, ...]:
    """What two bullets have in common, in order, when they say the same.

    Articles, case, plurals and punctuation at the edge of a word are folded. Everything else can
    turn advice around and stays: order, numbers, signs, negations, prepositions, names, and code
    as it is written. Linear in the text.
    """
    found: list[str] = []
    words, in_code, at_start = text.replace("’", "'").split(), False, True
    for word, following in zip(words, [*words[1:], ""], strict=True):
        quoted = in_code or word[0] in _QUOTES
        in_code ^= word.count("`") % 2 == 1
        bare = word.strip(_QUOTES).rstrip(_ENDS) or word
        is_article = bare in _ARTICLES or (at_start and bare.casefold() in _ARTICLES)
        if quoted or not is_article or not following[:1].isalpha():
            found += (
                [bare] if quoted else _folded(bare, is_name=not at_start and bare != bare.lower())
            )
        at_start = word[-1] in ".!?:"
    return tuple(found)


def _folded(word: str, *, is_name: bool) -> list[str]:
    if word.startswith("-"):
        return [word]  # an option: `-d` is not `-D`
    word = word.casefold()
    if word == "cannot" or word.endswith("n't"):
        return ["can" if word in {"cannot", "can't"} else word.removesuffix("n't"), "not"]
    if word == "each":
        return ["every"]
    is_plural = len(word) > 3 and word.endswith("s") and word.isalpha() and not is_name
    return [word if not is_plural or _NO_PLURAL.fullmatch(word) else word[:-1]]


def with_same_advice(texts: Iterable[tuple[str, str]], advice: Iterable[str]) -> Iterator[str]:
    """The ids of the texts whose content words are those of one of `advice`.

    Most lack its longest word, and to look for that takes a hundredth of the time. (Not for "every"
    and "not": a text may say "each" and "don't".)
    """
    wanted = {content_words(text) for text in advice}
    longest = {max({*words, ""} - {"every", "not"}, key=len).casefold() for words in wanted}
    for key, text in texts:
        plain = text.replace("’", "'").casefold()
        if any(word in plain for word in longest) and content_words(text) in wanted:
            yield key


def keeps_meaning(old: str, new: str) -> bool:
    """Whether votes on `old` still stand for `new`: it adds to the advice and turns nothing around.

    At least KEPT_WORDS of the words stay, in order, with every number; no word of TURNING leaves,
    and none comes but in words that are added at the end (an exception).
    """
    before, after = content_words(old.casefold()), content_words(new.casefold())
    kept, gone, come, inside = 0, set[str](), set[str](), set[str]()
    for step in Indel.opcodes(before, after):
        old_words, new_words = before[step.src_start : step.src_end], after[step.dest_start :]
        if step.tag == "equal":
            kept += sum(word not in _FUNCTION_WORDS for word in old_words)
        elif step.tag == "delete":
            gone |= set(old_words)
        else:
            come |= set(new_words[: step.dest_end - step.dest_start])
            inside |= come if step.src_start < len(before) else set()
    turned = TURNING & (gone | inside) or any(_DIGIT.search(word) for word in gone)
    had = sum(word not in _FUNCTION_WORDS for word in before)
    return not turned and kept >= KEPT_WORDS * had and not gone & come


def shared_words(old: str, new: str) -> float:
    """The share of the old text's content words, in any order, that the new one has: 0 to 1."""
    before = _word_starts(old)
    return len(before & _word_starts(new)) / len(before) if before else 1.0


def alike_pairs(texts: Mapping[str, str]) -> list[SimilarPair]:
    """Every pair of the texts by id that may say the same, most alike first: for a judge.

    Spelling finds typing errors and changed order, shared content words find other phrasings.
    About 0.3 s for 1,000 texts, all pairs of them.
    """
    found: dict[tuple[str, str], SimilarPair] = {}
    for pair in chain(similar_pairs(texts, threshold=SPELLING), _pairs_by_words(texts)):
        known = found.setdefault((pair.first, pair.second), pair)
        found[pair.first, pair.second] = max(known, pair, key=lambda one: one.score)
    places = {key: place for place, key in enumerate(texts)}
    return sorted(
        found.values(), key=lambda pair: (-pair.score, places[pair.first], places[pair.second])
    )


def _pairs_by_words(texts: Mapping[str, str]) -> Iterator[SimilarPair]:
    """Pairs with at least two content words, and SHARED_WORDS of them, in common."""
    bits: dict[str, int] = {}
    words = {key: _word_starts(text) for key, text in texts.items()}
    masks = [
        (key, sum(1 << bits.setdefault(word, len(bits)) for word in found), len(found))
        for key, found in words.items()
    ]
    for (first, one, size), (second, other, others) in combinations(masks, 2):
        shared = (one & other).bit_count()
        if shared > 1 and 200 * shared >= SHARED_WORDS * (size + others):
            yield SimilarPair(first, second, round(200 * shared / (size + others), 1))


def _word_starts(text: str) -> frozenset[str]:
    """The first five letters of each content word, plural or not."""
    words = re.findall(r"[^\W_]+", text.casefold())
    singular = (w[:-1] if len(w) > 3 and w.endswith("s") else w for w in words)
    return frozenset(word[:5] for word in singular if word not in _FUNCTION_WORDS)


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

    Rare words weigh more than common ones. Deterministic: ties keep the order of the texts.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._keys_of: dict[str, list[str]] = {}
        self._places: dict[str, tuple[int, float]] = {}
        for place, (key, text) in enumerate(texts.items()):
            stems = _stems(text)
            self._places[key] = place, math.sqrt(len(stems))
            for stem in stems:
                self._keys_of.setdefault(stem, []).append(key)

    def rank(self, query: str) -> list[str]:
        """The ids of the texts that share a word with the query, the closest first."""
        sums: dict[str, float] = {}
        for stem in sorted(_stems(query) & self._keys_of.keys()):
            keys = self._keys_of[stem]
            weight = math.log(1 + len(self._places) / len(keys))
            for key in keys:
                sums[key] = sums.get(key, 0) + weight
        # As (-score, place, id), which sorts without calling Python.
        scored = [(-sums[key] / self._places[key][1], self._places[key][0], key) for key in sums]
        return [key for *_, key in sorted(scored)]


def _stems(text: str) -> frozenset[str]:
    found = (_STEM.match(word) for word in _WORD.findall(text.casefold()))
    return frozenset(stem.group() for stem in found if stem)
