"""Extracts lessons from an agent's notes and trace by fixed rules.

A lesson is what follows a marker (`lesson: …`, `avoid: …`, `formula: …`) up to the end of its line,
or a sentence that gives advice by its form (`Always …`, `When …, check …`, `Next time, …`, `I
should have checked …`, `Refunds must be approved …`). In a trace, which is full of plans and tool
output, only markers and orders that nobody can mistake for a step. Everything else is
a story. docs/RULES_ENGINE.md says what the rules cannot see.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from evolution.engine.prompt_text import clean_text
from evolution.engine.providers.imperatives import (
    ADVICE,
    FIRM,
    HINDSIGHT,
    NEXT_TIME,
    WORDS,
    is_advice,
    reworded,
)
from playbooks.document.sections import DEFAULT_SECTIONS
from playbooks.document.text import normal_text

MAX_LESSONS = 3
"""Of one outcome: as many as the delta rules accept."""
MIN_LESSON_WORDS = 4
"""Words; fewer are a remark."""
LONGEST = 600
"""Characters; more are a dump."""
LONGEST_LINE = 2_000
"""Characters of a line that are looked at; longer ones are data."""
MAX_TRACE = 60_000
"""Characters of a trace that are looked at: the last ones, where an agent draws conclusions."""
STRATEGIES, FORMULAS, CODE, MISTAKES, HEURISTICS, CLUES, OTHERS = (
    section.title for section in DEFAULT_SECTIONS
)


@dataclass(frozen=True)
class Lesson:
    """One piece of advice, and the title of the default section that it belongs to."""

    section: str
    content: str


_SECTIONS = {section.key: section.title for section in DEFAULT_SECTIONS} | {"any": ""}
_MARKERS = {word: _SECTIONS[name] for name, group in WORDS["markers"].items() for word in group}
_WORDS = "|".join(sorted(_MARKERS, key=len, reverse=True))
_LEAD = r"[\s*•\-–]{0,9}(?:\d{1,2}[.)]\s{0,3})?\*{0,2}(?:(?:key|main|biggest|general|my|our)\s)?"
_MARKER = re.compile(
    rf"(?:^{_LEAD}|(?<=[.;!?])\s{{1,3}}\*{{0,2}})({_WORDS})\*{{0,2}}\s{{0,3}}:\*{{0,2}}\s{{0,3}}"
    rf"|^{_LEAD}({_WORDS})\*{{0,2}}\s+[-–—]\s+",
    re.IGNORECASE,
)
_LIST_ITEM = re.compile(r"\s*(?:[*•\-–]|\d{1,2}[.)])\s+\S")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'`(])|\n+")
_LIST_SIGN = re.compile(r"^[\s>*•\-–]+|^\d+[.)]\s+")
_NOISE = re.compile(
    r"(?:hi|hello|hey|dear|thanks|thank you|done|ok|okay|n/?a|none|nothing|no|yes|todo|tbd|lgtm|"
    r"see (?:above|below|trace)|all good|task (?:was )?(?:completed|done|finished)|completed|"
    r"finished|success(?:ful(?:ly)?)?|as expected|works?|worked|everything|have a|"
    r"let (?:me|us)|feel free|do you|do i|do we)\b[\s,.!:]*(?!\w+ing\b)",
    re.IGNORECASE,
)
_HEARSAY = re.compile(
    r"\b(?:they|he|she|customer|client|user|author|reviewer|everyone|people)\s+"
    r"(?:said|say|asked|wrote|told|replied|wanted)\b",
    re.IGNORECASE,
)
# Somebody else's words, or a plan: quotes, dialogues, and steps that were only announced.
_NOT_OURS = re.compile(
    r"\s*(?:>|(?:customer|client|agent|user|assistant|human|system|tool|stdout|stderr|output|input|q|a|"
    r"plan|steps?|todo|task|question|action|observation|prompt|instructions?)\s*:)",
    re.IGNORECASE,
)
# Lines of a trace that a program wrote.
_MACHINE_LINE = re.compile(
    r"\s*(?:[$#+|{}\[\]<>\"@=%]|//|/\*|--\s|-\S|\d{2,4}[-:/]|\w*(?:error|exception|warn(?:ing)?|info|"
    r"debug|traceback)\b(?!\s*:\s*[a-z])|(?:import|from|def|class|return|select|insert)\s)",
    re.IGNORECASE,
)
_PLEASE = re.compile(r"please,?\s+", re.IGNORECASE)
_WARNING = re.compile(r"(?:avoid|never|do not|don['’]t)\b", re.IGNORECASE)
_FORMULA = re.compile(r"\w\)?\s*=\s*\S.*[-/*+×÷^−∑]|\bformula\b", re.IGNORECASE)
_CODE = re.compile(r"`[^`]+`|\b\w+\(\)|\bSELECT\b.+\bFROM\b|\bdef \w+\(")


def lessons(notes: str, trace: str = "") -> list[Lesson]:
    """The first lessons, at most MAX_LESSONS, each text once; those in the notes come first."""
    found: dict[str, Lesson] = {}
    for lesson in (*_in_notes(notes), *_in_trace(trace)):
        found.setdefault(normal_text(lesson.content), lesson)
    return list(found.values())[:MAX_LESSONS]


def _in_notes(notes: str) -> Iterator[Lesson]:
    listed = ""
    for line in _own_lines(notes):
        marks = list(_MARKER.finditer(line))
        if listed and not marks and _LIST_ITEM.match(line):
            yield from _marked(listed, line)
            continue
        listed = _heading(line, marks)
        yield from _advice_in(line[: marks[0].start()] if marks else line)
        yield from _all_marked(line, marks)


def _in_trace(trace: str) -> Iterator[Lesson]:
    listed = ""
    for line in _own_lines(trace[-MAX_TRACE:]):
        marks = [mark for mark in _MARKER.finditer(line) if mark.start() == 0]
        if listed and not marks and _LIST_ITEM.match(line):
            yield from _marked(listed, line)
        elif not _MACHINE_LINE.match(line):
            listed = _heading(line, marks)
            yield from _all_marked(line, marks) if marks else _firm_advice_in(line)


def _own_lines(text: str) -> Iterator[str]:
    """Lines outside of code blocks that are not quoted, spoken by others, or data."""
    in_code = False
    for line in clean_text(text).split("\n"):
        if line.lstrip().startswith("```"):
            in_code = not in_code
        elif not in_code and len(line) <= LONGEST_LINE and not _NOT_OURS.match(line):
            yield line


def _heading(line: str, marks: list[re.Match[str]]) -> str:
    """The marker of a line that says nothing more (`Lessons:`): a list of them follows."""
    if len(marks) != 1 or line[marks[0].end() :].strip(" *:"):
        return ""
    return _word(marks[0])


def _word(mark: re.Match[str]) -> str:
    return (mark.group(1) or mark.group(2)).lower()


def _all_marked(line: str, marks: list[re.Match[str]]) -> Iterator[Lesson]:
    ends = [*(mark.start() for mark in marks), len(line)][1:]
    for mark, end in zip(marks, ends, strict=True):
        yield from _marked(_word(mark), line[mark.end() : end])


def _marked(marker: str, text: str) -> Iterator[Lesson]:
    """What follows a marker, worded so that it can stand alone."""
    text = _tidy(reworded(_tidy(text)))
    if not _is_worth_keeping(text):
        return
    if marker in {"avoid", "never", "always"} and not ADVICE.match(text):
        text = f"{marker.capitalize()} {_lower_first(text)}"
    elif marker in {"don't", "don’t", "do not"} and not _WARNING.match(text):
        text = f"Do not {_lower_first(text)}"
    elif marker in {"mistake", "pitfall"} and not _WARNING.match(text):
        text = f"Avoid this mistake: {_lower_first(text)}"
    yield Lesson(_MARKERS[marker] or section_of(text), text)


def _advice_in(text: str) -> Iterator[Lesson]:
    """Sentences that give advice by their form."""
    for sentence in _SENTENCE.split(text):
        tidy = _tidy(reworded(_tidy(sentence)))
        if is_advice(tidy) and _is_worth_keeping(tidy):
            yield Lesson(section_of(tidy), tidy)


def _firm_advice_in(text: str) -> Iterator[Lesson]:
    for sentence in _SENTENCE.split(text):
        tidy = _tidy(sentence)
        if FIRM.match(tidy) or NEXT_TIME.match(tidy) or HINDSIGHT.match(tidy):
            yield from _advice_in(tidy)


def section_of(text: str) -> str:
    """The default section that a lesson's own words belong to."""
    if _WARNING.match(text):
        return MISTAKES
    if _CODE.search(text):
        return CODE
    return FORMULAS if _FORMULA.search(text) else STRATEGIES


def _is_worth_keeping(text: str) -> bool:
    return (
        len(text.split()) >= MIN_LESSON_WORDS
        and len(text) <= LONGEST
        and not text.endswith("?")
        and not _NOISE.match(text)
        and not _HEARSAY.search(text)
    )


def _tidy(text: str) -> str:
    line = " ".join(_LIST_SIGN.sub("", text.strip()).split())
    line = _PLEASE.sub("", line, count=1) if _PLEASE.match(line) else line
    # A first word, not code: `print(x)` and `nDCG` stay as they are.
    return line[:1].upper() + line[1:] if re.match(r"[a-z]+[ ,]", line) else line


def _lower_first(text: str) -> str:
    """`rounding early` from `Rounding early`; `NPV of …` stays."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
