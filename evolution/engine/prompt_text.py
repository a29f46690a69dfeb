"""Untrusted text inside a prompt: cleaned, truncated, and fenced as data."""

import re
import secrets
import unicodedata
from dataclasses import dataclass

from core.text import trim_marks
from evolution.engine.inputs import PlaybookInput
from playbooks.document.text import Document, estimate_tokens, render_for_agents, text_hash


@dataclass(frozen=True)
class PromptLimits:
    """How much of each text a prompt carries, the rule when a prompt is too long for a model."""

    text: int
    """Characters of one text of an outcome or a reflection."""
    view: float
    """Share of the tokens that a role's prompt has for the playbook."""


FULL_LIMITS = PromptLimits(text=12_000, view=1.0)
SHORT_LIMITS = PromptLimits(text=2_000, view=0.25)
PURPOSES = {
    "strategies_and_insights": "how to go about a kind of task, and why",
    "formulas_and_calculations": "formulas, units, rounding and worked rules",
    "code_snippets_and_templates": "code, commands and forms to use as they stand",
    "common_mistakes_to_avoid": "what goes wrong again and again, and what to do instead",
    "problem_solving_heuristics": "what to try or check when one is stuck",
    "context_clues_and_indicators": "signs in a task that say what is meant",
    "others": "what fits nowhere else",
}
"""What the default sections are for, by key."""
TRUNCATION_NOTE = "\n[… {count} characters left out …]\n"
BEFORE_ERROR, AFTER_ERROR = 200, 400
"""Characters around a sign of trouble in a long trace that are read."""
_TROUBLE = re.compile(
    r"error|exception|traceback|fail|denied|refused|invalid|unexpected|not found|timed? ?out"
    r"|(?:http\S{0,10}|status|code|→|->|=>)\W{0,3}[45]\d\d\b",
    re.IGNORECASE,
)
_LINE_BREAK = re.compile("\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn"}


def clean_text(text: str) -> str:
    """The text without zero-width, control, private and surrogate characters.

    New lines and tabs stay; every Unicode line break becomes a new line. A model must not read
    what a person cannot see on the outcome's page.
    """
    if text.isascii() and text.isprintable():
        return text
    lines = _LINE_BREAK.sub("\n", text)
    return trim_marks("".join(kept for char in lines if (kept := _visible(char))))


def _visible(char: str) -> str:
    if char in "\n\t":
        return char
    # Variation selectors are "Mn", but a run of them can carry a hidden message.
    is_selector = 0xFE00 <= ord(char) <= 0xFE0F or 0xE0100 <= ord(char) <= 0xE01EF
    return "" if is_selector or unicodedata.category(char) in _INVISIBLE else char


def truncate_middle(text: str, limit: int) -> str:
    """At most about `limit` characters: the first and the last part, with a note between them.

    A trace usually starts with the attempt and ends with what went wrong.
    """
    if len(text) <= limit:
        return text
    head, tail = limit // 3, limit - limit // 3
    return text[:head] + TRUNCATION_NOTE.format(count=len(text) - limit) + text[len(text) - tail :]


def trace_excerpt(text: str, limit: int) -> str:
    """At most about `limit` characters: the start, what surrounds the first errors, and the end.

    The step that decided the result of a long run is rarely its last one.
    """
    if len(text) <= limit:
        return text
    edge = limit // 4
    spans, room = [(0, edge)], limit - 2 * edge
    for sign in _TROUBLE.finditer(text, edge, len(text) - edge):
        if sign.start() < spans[-1][1]:
            continue
        start = max(spans[-1][1], sign.start() - BEFORE_ERROR)
        end = min(sign.end() + AFTER_ERROR, start + room)
        if end <= sign.end():
            break
        spans.append((start, end))
        room -= end - start
    spans.append((max(spans[-1][1], len(text) - edge - room), len(text)))
    parts, done = list[str](), 0
    for start, end in spans:
        parts += [TRUNCATION_NOTE.format(count=start - done)] if start > done else []
        parts.append(text[start:end])
        done = end
    return "".join(parts)


def data_block(text: str) -> str:
    """The text between two lines that it cannot contain: their boundary is drawn at random."""
    text, boundary = clean_text(text), secrets.token_hex(8)
    return f"BEGIN DATA {boundary}\n{text}\nEND DATA {boundary}"


def playbook_block(document: Document, *, tokens: int) -> str:
    """The agent view between two lines that no bullet can contain, cut to whole lines.

    The mark is a hash of the view, not random: an unchanged playbook is an unchanged prefix, and
    the provider's prompt cache keeps hitting.
    """
    view = _first_lines(render_for_agents(document).strip() or "(no bullets yet)", tokens)
    return fenced_block("PLAYBOOK", view)


def purpose_block(playbook: PlaybookInput, *, sections: bool = False) -> str:
    """The playbook's name and purpose, and what its sections are for; empty for one without."""
    said = [f"Name: {playbook.name}"] if playbook.name else []
    said += [f"Purpose: {playbook.purpose}"] if playbook.purpose else []
    if sections:
        known = playbook.document.sections
        said += [f"{s.title}: {PURPOSES[s.key]}" for s in known if s.key in PURPOSES]
    return fenced_block("PURPOSE", clean_text("\n".join(said))) if said else ""


def fenced_block(name: str, text: str) -> str:
    """Bullets between two lines that none of them can contain."""
    mark = text_hash(text)[:12]
    return f"BEGIN {name} {mark}\n{text}\nEND {name} {mark}"


def _first_lines(text: str, tokens: int) -> str:
    if estimate_tokens(text) <= tokens:
        return text
    kept, lines = 0, text.split("\n")
    for number, line in enumerate(lines):
        kept += estimate_tokens(line + "\n")
        if kept > tokens:
            lines[number:] = [f"[… {len(lines) - number} more lines left out …]"]
            break
    return "\n".join(lines)
