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
from itertools import islice

from evolution.engine.prompt_text import clean_text
from evolution.engine.providers import advice_forms
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
MIN_ITEM_WORDS = 3
"""Words of an item among several in one line."""
LONGEST = 600
"""Characters; more are a dump."""
LONGEST_LINE = 2_000
"""Characters of a line that are looked at; longer ones are data."""
MAX_LINES = 500
"""Lines of the notes that are looked at."""
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
_LEAD = (
    r"[\s*•\-–]{0,9}(?:\d{1,2}[.)]\s{0,3})?\*{0,2}"
    r"(?:(?:key|main|biggest|general|my|our|one|two|three|four|five|some)\s)?"
)
_ABOUT = r"(?:\s(?:for|about|from|on|of|in|when|to|pour|para|für|aus)\s[^:.!?]{1,50})?"
_MARKER = re.compile(
    rf"(?:^{_LEAD}|(?<=[.;!?])\s{{1,3}}\*{{0,2}})({_WORDS}){_ABOUT}\*{{0,2}}\s{{0,3}}:\*{{0,2}}\s{{0,3}}"
    rf"|^{_LEAD}({_WORDS})\*{{0,2}}\s+[-–—]\s+",
    re.IGNORECASE,
)
_LIST_ITEM = re.compile(r"\s*(?:[*•\-–]|\d{1,2}[.)])\s+\S")
_SENTENCE = re.compile(
    r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!\svs\.)(?<!etc\.)(?<!\sz\.B\.)\s+(?=[^\W\d_]|[\"'`(¿¡])|\n+"
)
_NUMBERED = re.compile(r"[;,.]?\s{0,3}(?:^|(?<=\s))\(?\d{1,2}[.)]\s{1,3}")
_ALSO = re.compile(r"(?<=[.!])\s+Also,?\s+")
_THOUGHT = re.compile(r"^\s{0,9}(?:thoughts?|reflection):\s{1,3}", re.IGNORECASE)
_TOOL_OUTPUT = frozenset(WORDS["marker_kinds"]["tool_output"].split())
_WEAK = frozenset(WORDS["marker_kinds"]["weak"])
_STORY = re.compile(
    r"(?:i|we|i['’]\w+|we['’]\w+)\s|[a-z]+ed\s(?:the|a|an|all|to|it|in)\b", re.IGNORECASE
)
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
_REQUEST = re.compile(r"\s{0,3}(?:please|kindly),?\s(?!always|never|avoid|make sure|be sure)", re.I)
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
    lines = islice(_own_lines(notes), MAX_LINES)
    marked = [(line, list(_MARKER.finditer(line))) for line in lines]
    # Who names the lesson has said it: the rest of the notes is its story.
    freely = not any(marks for _, marks in marked)
    for line, marks in marked:
        if listed and not marks and _LIST_ITEM.match(line):
            yield from _marked(listed, line)
            continue
        listed = _heading(line, marks)
        yield from _advice_in(line[: marks[0].start()] if marks else line, freely=freely)
        yield from _all_marked(line, marks)


def _in_trace(trace: str) -> Iterator[Lesson]:
    listed = ""
    for line in _own_lines(trace[-MAX_TRACE:]):
        marks = [
            m for m in _MARKER.finditer(line) if m.start() == 0 and _word(m) not in _TOOL_OUTPUT
        ]
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
        elif in_code or not line or line.isspace() or len(line) > LONGEST_LINE:
            continue
        elif not _NOT_OURS.match(line):
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
        parts = _parts(line[mark.end() : end])
        least = MIN_LESSON_WORDS if len(parts) == 1 else MIN_ITEM_WORDS
        for part in parts:
            yield from _marked(_word(mark), part, least=least)


def _parts(text: str) -> list[str]:
    """The items of a list in one line: `(1) …; (2) …`."""
    found = _NUMBERED.split(text)
    return found[1:] if len(found) > 2 else _ALSO.split(text)


def _marked(marker: str, text: str, *, least: int = MIN_LESSON_WORDS) -> Iterator[Lesson]:
    """What follows a marker, worded so that it can stand alone."""
    first, rest = _first_retracted(text)
    if rest:
        yield from _advice_in(rest, freely=True)
        return
    text = _tidy(reworded(_tidy(first)))
    if not _is_worth_keeping(text, least=least):
        return
    if marker in _WEAK and _STORY.match(text):
        return
    if marker in {"avoid", "never", "always"} and not ADVICE.match(text):
        text = f"{marker.capitalize()} {_lower_first(text)}"
    elif marker in {"don't", "don’t", "do not"} and not _WARNING.match(text):
        text = f"Do not {_lower_first(text)}"
    elif marker in {"mistake", "pitfall"} and not _WARNING.match(text):
        text = f"Avoid this mistake: {_lower_first(text)}"
    yield Lesson(_MARKERS[marker] or section_of(text), text)


def _advice_in(text: str, *, freely: bool = False) -> Iterator[Lesson]:
    """Sentences that give advice by their form; `freely`: clauses of them and statements too."""
    found: Lesson | None = None
    for sentence in _SENTENCE.split(text):
        taken_back, rest = _first_retracted(sentence)
        if rest or taken_back != sentence:
            found, sentence = None, rest
        if found:
            yield found
        found = _lesson_in(sentence, freely=freely)
    if found:
        yield found


def _first_retracted(text: str) -> tuple[str, str]:
    """What stands before words that take it back, and what follows the last of them."""
    marks = list(advice_forms.RETRACTION.finditer(text))
    return (
        (text[: marks[0].start()], text[marks[-1].end() :].lstrip(" ,.:;-"))
        if marks
        else (text, "")
    )


def _lesson_in(sentence: str, *, freely: bool) -> Lesson | None:
    if _REQUEST.match(sentence):
        return None
    plain = _tidy(sentence)
    tidy = _tidy(reworded(advice_forms.from_hindsight(plain) if freely else plain))
    # What was worded anew is an order, whatever its verb.
    if not is_advice(tidy) and not (freely and tidy != plain):
        tidy = _tidy(advice_forms.found_in(plain)) if freely else ""
    return Lesson(section_of(tidy), tidy) if _is_worth_keeping(tidy) else None


def _firm_advice_in(text: str) -> Iterator[Lesson]:
    for sentence in _SENTENCE.split(_THOUGHT.sub("", text)):
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


def _is_worth_keeping(text: str, *, least: int = MIN_LESSON_WORDS) -> bool:
    return (
        len(text.split()) >= least
        and len(text) <= LONGEST
        and not text.endswith("?")
        and (not _NOISE.match(text) or advice_forms.FOREIGN.match(text) is not None)
        and not _HEARSAY.search(text)
        and not advice_forms.ONE_OFF.search(text)
        and not advice_forms.IRONY.search(text)
    )


def _tidy(text: str) -> str:
    line = " ".join(_LIST_SIGN.sub("", text.strip()).split())
    line = _PLEASE.sub("", line, count=1) if _PLEASE.match(line) else line
    # A first word, not code: `print(x)` and `nDCG` stay as they are.
    return line[:1].upper() + line[1:] if re.match(r"[a-z]+[ ,]", line) else line


def _lower_first(text: str) -> str:
    """`rounding early` from `Rounding early`; `NPV of …` stays."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
