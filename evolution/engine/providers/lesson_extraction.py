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
from evolution.engine.providers.advice import (
    WORDS,
    found_in,
    from_hindsight,
    is_advice,
    pattern,
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
_TOOL_OUTPUT = frozenset(WORDS["marker_kinds"]["tool_output"].split())
_WEAK = frozenset(WORDS["marker_kinds"]["weak"])


def lessons(notes: str, trace: str = "") -> list[Lesson]:
    """The first lessons, at most MAX_LESSONS, each text once; those in the notes come first."""
    found: dict[str, Lesson] = {}
    for lesson in (*_in_notes(notes), *_in_trace(trace)):
        found.setdefault(normal_text(lesson.content), lesson)
    return list(found.values())[:MAX_LESSONS]


def _in_notes(notes: str) -> Iterator[Lesson]:
    listed = ""
    lines = islice(_own_lines(notes), MAX_LINES)
    marked = [(line, list(pattern("marker").finditer(line))) for line in lines]
    # Who names the lesson has said it: the rest of the notes is its story.
    freely = not any(marks for _, marks in marked)
    for line, marks in marked:
        if listed and not marks and pattern("list_item").match(line):
            yield from _marked(listed, line)
            continue
        listed = _heading(line, marks)
        yield from _advice_in(line[: marks[0].start()] if marks else line, freely=freely)
        yield from _all_marked(line, marks)


def _in_trace(trace: str) -> Iterator[Lesson]:
    listed = ""
    for line in _own_lines(trace[-MAX_TRACE:]):
        first = pattern("marker").match(line)
        marks = [first] if first and _word(first) not in _TOOL_OUTPUT else []
        if listed and not marks and pattern("list_item").match(line):
            yield from _marked(listed, line)
        elif not pattern("machine_line").match(line):
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
        elif not pattern("not_ours").match(line):
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
    found = pattern("numbered").split(text)
    return found[1:] if len(found) > 2 else pattern("also").split(text)


def _marked(marker: str, text: str, *, least: int = MIN_LESSON_WORDS) -> Iterator[Lesson]:
    """What follows a marker, worded so that it can stand alone."""
    first, rest = _first_retracted(text)
    if rest:
        yield from _advice_in(rest, freely=True)
        return
    text = _tidy(reworded(_tidy(first)))
    if not _is_worth_keeping(text, least=least):
        return
    if marker in _WEAK and pattern("told_story").match(text):
        return
    if marker in {"avoid", "never", "always"} and not pattern("advice").match(text):
        text = f"{marker.capitalize()} {_lower_first(text)}"
    elif marker in {"don't", "don’t", "do not"} and not pattern("warning").match(text):
        text = f"Do not {_lower_first(text)}"
    elif marker in {"mistake", "pitfall"} and not pattern("warning").match(text):
        text = f"Avoid this mistake: {_lower_first(text)}"
    yield Lesson(_MARKERS[marker] or section_of(text), text)


def _advice_in(text: str, *, freely: bool = False) -> Iterator[Lesson]:
    """Sentences that give advice by their form; `freely`: clauses of them and statements too."""
    found: Lesson | None = None
    for sentence in pattern("sentence").split(text):
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
    marks = list(pattern("retraction").finditer(text))
    if not marks:
        return text, ""
    return text[: marks[0].start()], text[marks[-1].end() :].lstrip(" ,.:;-")


def _lesson_in(sentence: str, *, freely: bool) -> Lesson | None:
    if pattern("request").match(sentence):
        return None
    plain = _tidy(sentence)
    tidy = _tidy(reworded(from_hindsight(plain) if freely else plain))
    # What was worded anew is an order, whatever its verb.
    if not is_advice(tidy) and not (freely and tidy != plain):
        tidy = _tidy(found_in(plain)) if freely else ""
    return Lesson(section_of(tidy), tidy) if _is_worth_keeping(tidy) else None


def _firm_advice_in(text: str) -> Iterator[Lesson]:
    for sentence in pattern("sentence").split(pattern("thought").sub("", text)):
        tidy = _tidy(sentence)
        if any(pattern(form).match(tidy) for form in ("firm", "next_time", "hindsight")):
            yield from _advice_in(tidy)


def section_of(text: str) -> str:
    """The default section that a lesson's own words belong to."""
    if pattern("warning").match(text):
        return MISTAKES
    if pattern("code").search(text):
        return CODE
    return FORMULAS if pattern("formula").search(text) else STRATEGIES


def _is_worth_keeping(text: str, *, least: int = MIN_LESSON_WORDS) -> bool:
    if len(text.split()) < least or len(text) > LONGEST or text.endswith("?"):
        return False
    if pattern("noise").match(text) and not pattern("foreign_order").match(text):
        return False
    return not any(pattern(sign).search(text) for sign in ("hearsay", "one_off", "irony"))


def _tidy(text: str) -> str:
    line = " ".join(pattern("list_sign").sub("", text.strip()).split())
    line = pattern("please").sub("", line, count=1) if pattern("please").match(line) else line
    # A first word, not code: `print(x)` and `nDCG` stay as they are.
    return line[:1].upper() + line[1:] if re.match(r"[a-z]+[ ,]", line) else line


def _lower_first(text: str) -> str:
    """`rounding early` from `Rounding early`; `NPV of …` stays."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
