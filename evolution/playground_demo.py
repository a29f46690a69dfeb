"""The recorded chat: what the playground shows, for who has no model to ask.

A script plays the model (tests/playground/script.py); a test records it anew and compares it with
`recorded_chat.json`. What its calls used says nothing about a model's, so it is left out.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from evolution.playground_sides import Said, Side, said_in, shelves_of
from playbooks.document import Document, parse

RECORDED = Path(__file__).parent / "recorded_chat.json"


@cache
def demo_sides() -> list[Side]:
    """Both sides of the recording: under the playbook, and without it."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    return [_side(recorded, side) for side in recorded["sides"]]


def _side(recorded: dict[str, Any], side: dict[str, Any]) -> Side:
    document = parse(recorded["playbook"]) if side["reads_playbook"] else Document((), ())
    said: list[Said] = [
        said_in(document, role=one["role"], text=one["text"]) for one in side["said"]
    ]
    return Side(
        key=side["key"],
        label=side["label"],
        session=None,
        said=said,
        shelves=shelves_of(document),
        reads=side["reads_playbook"],
    )
