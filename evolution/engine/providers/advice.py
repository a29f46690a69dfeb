"""Recognizes advice: orders, rules, formulas, contrasts, hindsight; some in three more languages.

Words and patterns are in rules_words.toml. Statements and clauses are looked for in the first
LONGEST characters of a sentence, MAX_CLAUSES at most: the cost is linear in the report.
"""

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from playbooks.document.text import BULLET_ID

LONGEST = 400
"""Characters of a sentence in which a statement or clause is looked for."""
MAX_CLAUSES = 12
WORDS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("rules_words.toml").read_text(encoding="utf-8")
)
_REFERENCE = re.compile(r"<<([\w.]+)>>")


@cache
def pattern(name: str) -> re.Pattern[str]:
    """A pattern of rules_words.toml."""
    return re.compile(_text_of(name))


def _text_of(name: str) -> str:
    """A pattern with what it refers to: other patterns, words in any order, phrases in theirs."""
    if name == "bullet_id":
        return BULLET_ID.pattern
    if name == "markers":
        return _any([word for group in WORDS["markers"].values() for word in group])
    group, _, words = name.partition(".")
    if words:
        found = WORDS[group][words]
        return _any(found.split()) if isinstance(found, str) else "|".join(found)
    text = WORDS["patterns"][name].replace("\n", "")
    return _REFERENCE.sub(lambda reference: _text_of(reference[1]), text)


def _any(words: list[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def participle(verb: str) -> str:
    """`checked` for `check`, `run` for `run`."""
    if irregular := WORDS["participles"].get(verb):
        return str(irregular)
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ied"
    return f"{verb}{verb[-1]}ed" if verb in WORDS["verbs"]["doubled"].split() else f"{verb}ed"


_ORDERS = (WORDS["verbs"]["orders"] + WORDS["verbs"]["ambiguous"]).split()
BASE = {participle(verb): verb for verb in _ORDERS}
"""The verb behind a past participle."""


def reworded(sentence: str) -> str:
    """The order in `Next time, check …`, `It is better to …`, `I should have checked …`.

    Any other sentence comes back as it is.
    """
    for opening in ("next_time", "better", "ideally"):
        if match := pattern(opening).match(sentence):
            return sentence[match.end() :]
    match = pattern("hindsight").match(sentence)
    if match is None or match["verb"].lower() not in BASE:
        return sentence
    return f"{'do not ' if match['no'] else ''}{BASE[match['verb'].lower()]} {match['rest']}"


def is_advice(sentence: str) -> bool:
    """True for an order, a rule about a kind of thing, and a formula."""
    return any(pattern(form).match(sentence) for form in ("advice", "rule", "need", "equation"))


def from_hindsight(sentence: str) -> str:
    """The order in `Should have looked …` and `Checking X first would have saved an hour`."""
    if match := pattern("would_have").match(sentence):
        stem = match["verb"].lower()[:-3]
        bases = (stem, f"{stem}e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem)
        verb = next((base for base in bases if base in _ORDERS), "")
        return f"{verb.capitalize()} {match['rest']}." if verb else sentence
    if pattern("bare_hindsight").match(sentence):
        return f"I {sentence[:1].lower()}{sentence[1:]}"
    return sentence


def found_in(sentence: str) -> str:
    """The longest clause of the sentence that is advice by itself, or an empty string."""
    sentence = sentence[:LONGEST]
    found = next((clause for clause in _clauses(sentence) if _is_advice(clause)), "")
    if found != sentence and pattern("needs_context").match(found):
        is_story = pattern("story").search(sentence) or pattern("points_back").match(sentence)
        return "" if is_story else sentence
    return found


def _clauses(sentence: str) -> Iterator[str]:
    """The sentence and what follows each mark in it, without the words that lead in."""
    starts = [0, *(match.end() for match in pattern("clause").finditer(sentence))]
    for start in starts[:MAX_CLAUSES]:
        clause = sentence[start:]
        for _ in range(3):
            opening = pattern("opening").match(clause)
            clause = clause[opening.end() :] if opening else clause
        yield clause


def _is_advice(clause: str) -> bool:
    if pattern("story").search(clause) or pattern("foreign_story").search(clause):
        return False
    if pattern("foreign_order").match(clause):
        return True
    if pattern("points_back").match(clause):
        return False
    forms = ("rule", "need", "clear_order")
    return (
        any(pattern(form).match(clause) for form in forms) or _has_order(clause) or is_fact(clause)
    )


def _has_order(clause: str) -> bool:
    """A statement and what follows from it: `BETWEEN is inclusive, use >= and <`."""
    ends = [match.end() for match in pattern("clause").finditer(clause)][:MAX_CLAUSES]
    leads = pattern("fact_verb").search(clause) or pattern("leading_condition").match(clause)
    return leads is not None and any(pattern("clear_order").match(clause, end) for end in ends)


def is_fact(clause: str) -> bool:
    """True for a statement in the present tense that says what people get wrong."""
    contrast = pattern("contrast").search(clause)
    return contrast is not None and pattern("fact_verb").search(clause) is not None
