"""Explicit lessons in an agent's notes, found by fixed rules: what a line says it is.

A lesson is what follows a marker (`lesson: …`, `avoid: …`, `formula: …`) up to the end of its line,
or a sentence that gives advice by its form (`Always …`, `Never …`, `When …, check …`, `Use …`).
Everything else in the notes is a story, and a story is not advice.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evolution.engine.quoting import clean_text
from playbooks.document import DEFAULT_SECTIONS, normal_text

MAX_LESSONS = 3
"""Of one outcome: as many as the delta rules accept."""
SHORTEST = 4
"""Words; fewer are a remark."""
LONGEST = 600
"""Characters; more are a dump."""
STRATEGIES, FORMULAS, CODE, MISTAKES, HEURISTICS, CLUES, OTHERS = (
    section.title for section in DEFAULT_SECTIONS
)


@dataclass(frozen=True)
class Lesson:
    """One piece of advice, and the title of the default section that it belongs to."""

    section: str
    content: str


_MARKERS = {
    "lesson": "",
    "lessons": "",
    "lesson learned": "",
    "lesson learnt": "",
    "lessons learned": "",
    "learned": "",
    "learnt": "",
    "takeaway": "",
    "insight": "",
    "tip": "",
    "rule": "",
    "strategy": STRATEGIES,
    "remember": STRATEGIES,
    "always": STRATEGIES,
    "avoid": MISTAKES,
    "never": MISTAKES,
    "mistake": MISTAKES,
    "pitfall": MISTAKES,
    "formula": FORMULAS,
    "calculation": FORMULAS,
    "code": CODE,
    "snippet": CODE,
    "template": CODE,
    "heuristic": HEURISTICS,
    "clue": CLUES,
    "indicator": CLUES,
}
_MARKER = re.compile(
    r"(?:^|(?<=[.;!?])\s{1,3})[\s>*•\-–]{0,9}(?:\d{1,2}[.)]\s{0,3})?\*{0,2}("
    + "|".join(sorted(_MARKERS, key=len, reverse=True))
    + r")\*{0,2}\s{0,3}:\*{0,2}\s{0,3}",
    re.IGNORECASE,
)
_VERB = (
    r"(?:"
    r"add|apply|ask|assume|begin|break|cancel|cap|capture|check|choose|cite|"
    r"clarify|combine|compare|compute|calculate|confirm|consider|convert|copy|count|"
    r"cross-check|decide|define|derive|divide|double-check|ensure|escape|estimate|"
    r"exclude|express|extract|factor|filter|find|first|follow|format|handle|"
    r"identify|ignore|include|inspect|invert|keep|label|limit|list|look|map|mark|"
    r"match|measure|mind|multiply|name|normalise|normalize|note|omit|parse|pass|"
    r"pick|prefer|preserve|put|quote|read|recheck|re-read|reduce|re-run|remember|"
    r"remove|replace|report|require|respect|rewrite|round|sanity-check|scale|select|"
    r"separate|set|show|simplify|skip|solve|sort|specify|split|start|state|stick|"
    r"strip|subtract|substitute|sum|take|treat|trim|try|use|validate|verify|watch|"
    r"weigh|work|write"
    r")"
)
_STORY = r"(?:of|for|was|is|were|are|has|had|failed|passed|done|ok|completed|worked|came|\d\S*)\b"
_ORDER = rf"(?:always|never|avoid|do not|don['’]t|make sure|be sure to|please {_VERB}|{_VERB})"
_ADVICE = re.compile(
    rf"(?:{_ORDER}\b(?!\s+{_STORY})|(?:when|whenever|if|before|after|for|while)\b[^?]*?,\s*{_ORDER}\b)",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`(])|\n+")
_LIST_SIGN = re.compile(r"^[\s>*•\-–]+|^\d+[.)]\s+")
_NOISE = re.compile(
    r"(?:hi|hello|hey|dear|thanks|thank you|done|ok|okay|n/?a|none|nothing|no|yes|todo|tbd|lgtm|"
    r"see (?:above|below|trace)|all good|task (?:was )?(?:completed|done|finished)|completed|"
    r"finished|success(?:ful(?:ly)?)?|as expected|works?|worked|everything)\b[\s,.!:]*(?!\w+ing\b)",
    re.IGNORECASE,
)
# Advice that others are to follow: what reads like an attack is not passed on.
_UNSAFE = re.compile(
    r"https?://|www\.|\|\s*(?:ba|z)?sh\b|rm\s+-rf|BEGIN [A-Z ]*PRIVATE KEY|\b(?:sk|ghp|xox[bp])-\w|"
    r"(?:ignore|disregard|forget)\b.{0,30}\b(?:instructions?|rules|prompts?)\b|system prompt",
    re.IGNORECASE,
)
_WARNING = re.compile(r"(?:avoid|never|do not|don['’]t)\b", re.IGNORECASE)
_FORMULA = re.compile(r"\w\)?\s*=\s*\S.*[-/*+×÷^−∑]|\bformula\b", re.IGNORECASE)
_CODE = re.compile(r"`[^`]+`|\b\w+\(\)|\bSELECT\b.+\bFROM\b|\bdef \w+\(")


def lessons(notes: str) -> list[Lesson]:
    """The first lessons in the notes, at most MAX_LESSONS, each text once."""
    found: dict[str, Lesson] = {}
    for lesson in _all_lessons(clean_text(notes)):
        found.setdefault(normal_text(lesson.content), lesson)
    return list(found.values())[:MAX_LESSONS]


def _all_lessons(notes: str) -> Iterator[Lesson]:
    for line in notes.split("\n"):
        marks = list(_MARKER.finditer(line))
        starts = [mark.start() for mark in marks] + [len(line)]
        yield from _advice_in(line[: starts[0]])
        for mark, end in zip(marks, starts[1:], strict=True):
            yield from _marked(mark.group(1).lower(), line[mark.end() : end])


def _marked(marker: str, text: str) -> Iterator[Lesson]:
    """What follows a marker, worded so that it can stand alone."""
    text = _tidy(text)
    if not _is_worth_keeping(text):
        return
    if marker in {"avoid", "never", "always"} and not _ADVICE.match(text):
        text = f"{marker.capitalize()} {_lower_first(text)}"
    elif marker in {"mistake", "pitfall"} and not _WARNING.match(text):
        text = f"Avoid this mistake: {_lower_first(text)}"
    yield Lesson(_MARKERS[marker] or section_of(text), text)


def _advice_in(text: str) -> Iterator[Lesson]:
    """Sentences that give advice by their form."""
    for sentence in _SENTENCE.split(text):
        tidy = _tidy(sentence)
        if _ADVICE.match(tidy) and _is_worth_keeping(tidy):
            yield Lesson(section_of(tidy), tidy)


def section_of(text: str) -> str:
    """The default section that a lesson's own words belong to."""
    if _WARNING.match(text):
        return MISTAKES
    if _CODE.search(text):
        return CODE
    return FORMULAS if _FORMULA.search(text) else STRATEGIES


def _is_worth_keeping(text: str) -> bool:
    return (
        len(text.split()) >= SHORTEST
        and len(text) <= LONGEST
        and not text.endswith("?")
        and not _NOISE.match(text)
        and not _UNSAFE.search(text)
    )


def _tidy(text: str) -> str:
    line = " ".join(_LIST_SIGN.sub("", text.strip()).split())
    # A first word, not code: `print(x)` and `nDCG` stay as they are.
    return line[:1].upper() + line[1:] if re.match(r"[a-z]+[ ,]", line) else line


def _lower_first(text: str) -> str:
    """`rounding early` from `Rounding early`; `NPV of …` stays."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
