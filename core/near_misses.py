"""Fields of a report as a model meant them: one slip must not lose it."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from rapidfuzz import fuzz, process

MAX_GUESSES = 20
SYNONYMS = {
    "id": "playbook_id",
    "task": "task_description",
    "result": "outcome",
    "status": "outcome",
    "trace": "reasoning_trace",
}
"""What models call a field whose name is spelt otherwise."""


def understand_fields(
    sent: Mapping[str, Any], *, of: str, known: Collection[str], lists: Collection[str]
) -> tuple[dict[str, Any], list[str], bool]:
    """The known fields that were sent or meant, warnings, and whether the first names unknown ones.

    Models send null for a field that they leave out, and a text for one of the `lists`.
    """
    fields = {name: value for name, value in sent.items() if name in known and value is not None}
    others = [name for name, value in sent.items() if name not in known and value is not None]
    warnings, unknown = [], []
    for number, name in enumerate(others):
        shown = re.sub(r"\W", "", name[:40], flags=re.ASCII)
        meant = meant_name(name, known) if number < MAX_GUESSES else None
        if meant is None or meant in fields:
            unknown.append(shown)
        else:
            fields[meant] = sent[name]
            warnings.append(f"{shown} was taken as {meant}.")
    for name in lists:
        if isinstance(fields.get(name), str):
            fields[name] = re.findall(r"[^\s,;\[\]\"']+", fields[name])
            warnings.append(f"{name}: a text was taken as a list.")
    if unknown:
        warnings.insert(0, f"{of} takes no {', '.join(unknown[:5])}, only {', '.join(known)}.")
    return fields, warnings, bool(unknown)


def meant_name(name: str, known: Collection[str]) -> str | None:
    """The known field that a misspelt one means, or None."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name[:40]).replace("-", "_").lower()
    near = process.extractOne(
        SYNONYMS.get(plain, plain), list(known), scorer=fuzz.ratio, score_cutoff=80
    )
    return near[0] if near else None
