"""Recognizes English advice: orders, rules and formulas; its words are in rules_words.toml."""

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

WORDS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("rules_words.toml").read_text(encoding="utf-8")
)
CLEAR, UNCLEAR = WORDS["verbs"]["orders"].split(), WORDS["verbs"]["ambiguous"].split()
_DOUBLED = frozenset(WORDS["verbs"]["doubled"].split())


def participle(verb: str) -> str:
    """`checked` for `check`, `run` for `run`."""
    if irregular := WORDS["participles"].get(verb):
        return str(irregular)
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ied"
    return f"{verb}{verb[-1]}ed" if verb in _DOUBLED else f"{verb}ed"


BASE = {participle(verb): verb for verb in (*CLEAR, *UNCLEAR)}
"""The verb behind a past participle."""


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


# What does not follow an order: `Use of …`, `Check failed`, `Read 3 files`.
_STORY = (
    r"(?:of|was|is|were|are|has|had|done|ok|came|went|took|\d\S*|"
    r"(?:fail|pass|work|complet|succeed|finish|return|show|look|turn|crash|tim|run)e?d)\b"
)
_OBJECT = (
    r"(?:the|a|an|all|any|each|every|both|only|it|them|this|that|these|those|your|its|their|no|one|two|"
    r"what|which|who|whether|how|why|where|when|if|with|without|before|after|once|at|on|in|out|by|as|to|for|"
    r"from|against|until|percentages|dates|times|names|units|numbers|signs|inputs?|outputs?|errors?|"
    r"changed|new|old|integers|values|results|money)\b|[`'\"]"
)
VERB = rf"(?:(?:{_any(CLEAR)})\b(?!\s+{_STORY})|(?:{_any(UNCLEAR)})\b(?=\s+(?:{_OBJECT})))"
STRONG = r"(?:always|never|avoid|do not|don['’]t|make sure|be sure to)\b"
ORDER = rf"(?:{STRONG}(?!\s+{_STORY})|{VERB})"
CONDITION = (
    r"(?:when|whenever|if|before|after|for|while|unless|instead of|as soon as)\b[^?,]{0,200},"
)
ADVICE = re.compile(rf"(?:{ORDER}|{CONDITION}(?:[^?,]{{0,80}},){{0,2}}\s*{ORDER})", re.IGNORECASE)
_ANY_VERB = rf"(?:{_any((*CLEAR, *UNCLEAR))})\b"
_FIRM = rf"(?:(?:always|never|do not|don['’]t)\s+{_ANY_VERB}|avoid\b|make sure\b)(?!\s+{_STORY})"
FIRM = re.compile(rf"(?:{_FIRM}|{CONDITION}\s*{_FIRM})", re.IGNORECASE)
"""Orders that nobody mistakes for a step of a story."""
NEXT_TIME = re.compile(
    r"(?:(?:the )?next time|in (?:the )?future|from now on|going forward)\s*[,:]?\s+"
    rf"(?:please\s+|to\s+)?(?={ORDER}|(?!(?:i|we|you|it|they|this|that|there|the|an?)\b)[a-z]+\s)",
    re.IGNORECASE,
)
HINDSIGHT = re.compile(
    r"(?:in hindsight,?\s+)?(?:i|we|the agent|this agent)\s+should(?P<no>n['’]t|\s+not)?\s+"
    r"(?:(?P<how>always|also|first|at least)\s+)?have\s+(?P<verb>[a-z-]+)\s+(?P<rest>.+)",
    re.IGNORECASE,
)
# A rule about things: `Refunds above 50 must be approved`. Not a guess: `It must be broken`.
_DONE = (
    r"(?!broken|confused|mistaken|related|caused|outdated|cached|fixed|solved|resolved)"
    r"(?:\w+(?:ed|en|wn)|kept|made|set|sent|held|read|run|done|built|put|cut|split|left|unique|sorted)"
)
RULE = re.compile(
    r"(?!(?:i|we|you|he|she|they|it|this|that|there|these|those|what|who|which|my|our)\b)"
    r"[^?,;:]{3,120}?\b(?:(?:must|has to|have to|needs? to)\s+"
    rf"(?:always\s+|never\s+|not\s+|only\s+)?be\s+{_DONE}\b|should\s+(?:always|never|only)\s+be\s+{_DONE}\b|"
    rf"should\s+(?:not\s+)?be\s+{_DONE}\b.{{0,60}}\b(?:before|after|when|whenever|unless|first)\b)",
    re.IGNORECASE,
)


BETTER = re.compile(
    r"(?:in hindsight,?\s+)?(?:it\s+(?:is|would be|would have been)|it['’]s|it['’]d be)\s+"
    rf"(?:much\s+)?(?:better|best|safer|wiser|cleaner)\s+to\s+(?={_ANY_VERB})",
    re.IGNORECASE,
)

# `Every list needs an upper limit`, `Alerts need an owner`: about a kind of thing, not one of them.
NEED = re.compile(
    r"(?:(?:every|each|all|any|no)\s+[^?,;:]{2,80}?\b"
    r"(?:must|needs?|has to|have to|requires?|belongs?|should)\s|"
    r"(?!(?:yes|this|these|those|users?|customers?|tests)\b)(?:[a-z-]+\s){0,2}[a-z-]{3,}[^su\W]s\s+"
    r"(?:must\s+(?:not\s+)?(?:have|carry|contain|name|start|end|match|stay)|(?:always\s+)?need)\s+"
    r"(?:an?|the|their|at least|one|two|no)\b)",
    re.IGNORECASE,
)
EQUATION = re.compile(
    r"(?:[A-Z][A-Za-z]+|[A-Za-z]+(?:\s[\w()%&/-]+){1,6})\s=\s"
    r"(?=[^;{}=]{5,200}$)[^;{}=]*(?:[-+*/×÷]|\b(?:minus|plus|times|divided by|sum of|share of)\b)"
)
IDEALLY = re.compile(
    rf"ideally,?\s+(?:one|you|we|i)\s+(?:would|should|could)\s+(?:first\s+)?(?={_ANY_VERB})",
    re.IGNORECASE,
)


def reworded(sentence: str) -> str:
    """The order in `Next time, check …`, `It is better to …`, `I should have checked …`.

    Any other sentence comes back as it is.
    """
    if match := _first(sentence):
        sentence = sentence[match.end() :]
    elif (match := HINDSIGHT.match(sentence)) and match["verb"].lower() in BASE:
        verb = BASE[match["verb"].lower()]
        sentence = f"{'do not ' if match['no'] else ''}{verb} {match['rest']}"
    return sentence


def _first(sentence: str) -> re.Match[str] | None:
    """The opening that an order follows, if any."""
    return NEXT_TIME.match(sentence) or BETTER.match(sentence) or IDEALLY.match(sentence)


def is_advice(sentence: str) -> bool:
    """True for an order, a rule about a kind of thing, and a formula."""
    return any(form.match(sentence) for form in (ADVICE, RULE, NEED, EQUATION))
