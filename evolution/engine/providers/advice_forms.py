"""Recognizes advice that is no plain order: contrasts, hindsight, clauses, three more languages.

Its words are in rules_words.toml. Each text is looked at up to LONGEST characters and MAX_CLAUSES
clauses, by expressions whose repetitions have an end: the cost is linear in the report.
"""

import re
from collections.abc import Iterable, Iterator

from evolution.engine.providers.imperatives import BASE, CLEAR, NEED, RULE, STRONG, VERB, WORDS

LONGEST = 400
"""Characters of a sentence in which a statement or clause is looked for."""
MAX_CLAUSES = 12


def phrases(group: str, name: str) -> re.Pattern[str]:
    """A list of expressions in rules_words.toml as one pattern, between word boundaries."""
    found: Iterable[str] = WORDS[group][name]
    return re.compile(rf"(?<!\w)(?:{'|'.join(found)})", re.IGNORECASE)


ONE_OFF, IRONY = phrases("not_advice", "one_off"), phrases("not_advice", "irony")
RETRACTION = phrases("not_advice", "retraction")
_VERB = re.compile(rf"(?<![\w-])(?:{'|'.join(WORDS['facts']['verbs'].split())})(?![\w-])", re.I)
_CONTRAST = re.compile(rf"(?:(?<!\w)|(?=,))(?:{'|'.join(WORDS['facts']['contrast'])})", re.I)
_OPENING = re.compile(rf"(?:{'|'.join(WORDS['facts']['openings'])})", re.I)
FOREIGN = re.compile(rf"(?:{'|'.join(WORDS['foreign']['orders'])})", re.I)
_FOREIGN_STORY = re.compile("|".join(WORDS["foreign"]["story"]), re.I)
_STORY = re.compile(rf"\b(?:{'|'.join(WORDS['facts']['story'])})\b", re.I)
_POINTS_BACK = re.compile(rf"(?:{'|'.join(WORDS['facts']['points_back'])})\b", re.I)
_NEEDS_CONTEXT = re.compile(
    r"(?:always |never |do not |don['’]t )?[a-z-]+ (?:it|them|this|that|these|those)\b", re.I
)
# Where a clause can begin that is advice by itself.
_CLAUSE = re.compile(
    r"(?:[;:]|->|→|=>|\s[-–—]|,?\s(?:so|because|since|as|that|but|weil|denn|porque|car)\b|,)\s+(?:that\s+)?"
)
_CONDITION = re.compile(
    r"(?:with|for|in|on|when|if|to|from|by|after|before|during|at|under|while|whenever)\s", re.I
)
_CLEAR_ORDER = re.compile(
    rf"(?:always\s+|first\s+)?(?:{STRONG}|(?:{'|'.join(CLEAR)})\b|{VERB})", re.IGNORECASE
)
_BARE_HINDSIGHT = re.compile(r"should(?P<no>n['’]t|\s+not)?\s+(?:\w+\s)?have\s+(?=[a-z-]+\s)", re.I)
_WOULD_HAVE = re.compile(
    r"(?:simply\s+|just\s+)?(?P<verb>[a-z-]+ing)\s+(?P<rest>[^.!?]{5,160}?)\s+"
    r"(?:earlier\s+|sooner\s+)?(?:would|could|might) have "
    rf"(?:{'|'.join(WORDS['facts']['would_have'])})\b",
    re.IGNORECASE,
)


def from_hindsight(sentence: str) -> str:
    """The order in `Should have looked …` and `Checking X first would have saved an hour`."""
    if match := _WOULD_HAVE.match(sentence):
        stem = match["verb"].lower()[:-3]
        bases = (stem, f"{stem}e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem)
        verb = next((base for base in bases if base in _BASES), "")
        return f"{verb.capitalize()} {match['rest']}." if verb else sentence
    if _BARE_HINDSIGHT.match(sentence):
        return f"I {sentence[:1].lower()}{sentence[1:]}"
    return sentence


_BASES = frozenset(BASE.values())


def found_in(sentence: str) -> str:
    """The longest clause of the sentence that is advice by itself, or an empty string."""
    sentence = sentence[:LONGEST]
    found = next((clause for clause in _clauses(sentence) if _is_advice(clause)), "")
    if found != sentence and _NEEDS_CONTEXT.match(found):
        return "" if _STORY.search(sentence) or _POINTS_BACK.match(sentence) else sentence
    return found


def _clauses(sentence: str) -> Iterator[str]:
    """The sentence and what follows each mark in it, without the words that lead in."""
    starts = [0, *(match.end() for match in _CLAUSE.finditer(sentence))]
    for start in starts[:MAX_CLAUSES]:
        clause = sentence[start:]
        for _ in range(3):
            opening = _OPENING.match(clause)
            clause = clause[opening.end() :] if opening else clause
        yield clause


def _is_advice(clause: str) -> bool:
    if _STORY.search(clause) or _FOREIGN_STORY.search(clause):
        return False
    if FOREIGN.match(clause) or _POINTS_BACK.match(clause):
        return FOREIGN.match(clause) is not None
    return bool(
        RULE.match(clause)
        or NEED.match(clause)
        or _CLEAR_ORDER.match(clause)
        or _has_order(clause)
        or is_fact(clause)
    )


def _has_order(clause: str) -> bool:
    """A statement and what follows from it: `BETWEEN is inclusive, use >= and <`."""
    ends = [match.end() for match in _CLAUSE.finditer(clause)][:MAX_CLAUSES]
    leads = _VERB.search(clause) or _CONDITION.match(clause)
    return leads is not None and any(_CLEAR_ORDER.match(clause, end) for end in ends)


def is_fact(clause: str) -> bool:
    """True for a statement in the present tense that says what people get wrong."""
    contrast = _CONTRAST.search(clause)
    return contrast is not None and _VERB.search(clause) is not None
