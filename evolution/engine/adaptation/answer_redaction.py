"""Redacts the known answer from the reflection that the Generator reads before it retries."""

import re
from decimal import Decimal

from evolution.engine.number_parsing import numbers_in, read_number
from evolution.engine.reflector import Reflection

WITHHELD = "[withheld]"
ROUNDING = Decimal("0.005")
"""As far from the answer a number may be and still be right to two places."""
REDACTED_FIELDS = (
    *("reasoning", "error_identification", "root_cause_analysis"),
    *("correct_approach", "key_insight"),
)


def redact_answer(reflection: Reflection, *targets: str) -> Reflection:
    """The reflection with every literal mention of a target, or of one of its items, blanked.

    Numbers are found however they are written. A paraphrase ("fifteen") is not found.
    """
    texts = {name: getattr(reflection, name) for name in REDACTED_FIELDS}
    for target in sorted(targets, key=lambda target: (-len(target), target)):
        texts = {name: redact_target(text, target) for name, text in texts.items()}
    return reflection.model_copy(update=texts | {"evidence": "", "bullet_tags": []})


def redact_target(text: str, target: str) -> str:
    """The text without the target."""
    if not target.strip():
        return text
    for piece in _pieces(target):
        if (number := read_number(piece)) is not None:
            text = _without_number(text, number)
            continue
        flags = re.IGNORECASE if len(piece) > 1 else 0
        text = re.sub(rf"(?<!\w){re.escape(piece)}(?!\w)", WITHHELD, text, flags=flags)
    return text


def _pieces(target: str) -> list[str]:
    """The whole target, then its items, longest first, so that no part of one stays."""
    items = {*target.split(","), *re.split(r",\s", target)} if read_number(target) is None else ()
    pieces = {piece.strip() for piece in (target, *items)} - {""}
    return sorted(pieces, key=lambda piece: (-len(piece), piece))


def _without_number(text: str, number: Decimal) -> str:
    """The text without the number; its sign does not count, `(15)` is -15 as well."""
    spans = sorted(
        (start, end)
        for start, end, found in numbers_in(text)
        if any(abs(abs(one) - abs(number)) <= ROUNDING for one in found)
    )
    parts, done = list[str](), 0
    for start, end in spans:
        if start >= done:
            parts += [text[done:start], WITHHELD]
        done = max(done, end)
    return "".join([*parts, text[done:]])
