"""The recorded chat: what the playground shows, for who has no model to ask.

A script plays the model (tests/evolution/playground/record_chat.py); a test records it anew and compares it with
`recorded_chat.json`. What its calls used says nothing about a model's, so it is left out.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from evolution.playground.chat_display import (
    ChatSide,
    DisplayedMessage,
    displayed_text,
    sections_with_bullets,
)
from playbooks.document.text import Document, parse

RECORDING_PATH = Path(__file__).parent / "recorded_chat.json"


@cache
def recorded_sides() -> list[ChatSide]:
    """Both sides of the recording: under the playbook, and without it."""
    recorded = json.loads(RECORDING_PATH.read_text(encoding="utf-8"))
    return [_side(recorded, side) for side in recorded["sides"]]


def _side(recorded: dict[str, Any], side: dict[str, Any]) -> ChatSide:
    document = parse(recorded["playbook"]) if side["reads_playbook"] else Document((), ())
    said: list[DisplayedMessage] = [
        displayed_text(document, role=one["role"], text=one["text"]) for one in side["said"]
    ]
    return ChatSide(
        key=side["key"],
        label=side["label"],
        session=None,
        said=said,
        shelves=sections_with_bullets(document),
        reads=side["reads_playbook"],
    )
