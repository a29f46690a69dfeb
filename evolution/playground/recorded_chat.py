"""The recorded chat that the playground shows where no model is configured.

A script plays the model (tests/evolution/playground/record_chat.py); a test records it again and
compares it with `recorded_chat.json`. Tokens and cost are left out: they are the script's.
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
    messages: list[DisplayedMessage] = [
        displayed_text(document, role=one["role"], text=one["text"]) for one in side["messages"]
    ]
    return ChatSide(
        key=side["key"],
        label=side["label"],
        session=None,
        messages=messages,
        sections=sections_with_bullets(document),
        reads=side["reads_playbook"],
    )
