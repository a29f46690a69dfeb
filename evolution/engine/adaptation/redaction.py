"""Keeps a known answer out of what the Generator is told about its last attempt."""

import re

from evolution.engine.numbers import numbers_in, read_number, same_number
from evolution.engine.reflector import Reflection

WITHHELD = "[withheld]"
TOLD = (
    *("reasoning", "error_identification", "root_cause_analysis"),
    *("correct_approach", "key_insight"),
)


def without_answer(reflection: Reflection, *targets: str) -> Reflection:
    """The reflection with every literal mention of a target, or of one of its items, blanked.

    Numbers are found however they are written. A paraphrase ("fifteen") is not found.
    """
    told = {name: getattr(reflection, name) for name in TOLD}
    for target in sorted(targets, key=lambda target: (-len(target), target)):
        told = {name: blanked(text, target) for name, text in told.items()}
    return reflection.model_copy(update=told | {"evidence": "", "bullet_tags": []})


def blanked(text: str, target: str) -> str:
    """The text without the target."""
    if not target.strip():
        return text
    for piece in _pieces(target):
        flags = re.IGNORECASE if len(piece) > 1 else 0
        text = re.sub(rf"(?<!\w){re.escape(piece)}(?!\w)", WITHHELD, text, flags=flags)
    return _without_number(text, target) if read_number(target) is not None else text


def _pieces(target: str) -> list[str]:
    """The whole target, then its items, longest first, so that no part of one stays."""
    items = {item.strip() for item in target.split(",")} if read_number(target) is None else set()
    return sorted({target.strip(), *items} - {""}, key=lambda piece: (-len(piece), piece))


def _without_number(text: str, target: str) -> str:
    parts, end = [], 0
    for start, stop, _ in list(numbers_in(text)):
        if same_number(text[start:stop], target, decimals=2):
            parts += [text[end:start], WITHHELD]
            end = stop
    return "".join([*parts, text[end:]])
