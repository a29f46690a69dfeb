"""Messages of the pages that carry a way back."""

from django.contrib import messages
from django.contrib.messages.storage.base import Message
from django.http import HttpRequest

UNDO_TAG_PREFIX = "undo:"


def add_success_message(request: HttpRequest, text: str, *, undo: str = "") -> None:
    """The next page says so; with `undo`, an address to POST to, it offers the way back."""
    messages.success(request, text, extra_tags=f"{UNDO_TAG_PREFIX}{undo}" if undo else "")


def undo_url(message: Message) -> str:
    """Where an undo of this message is sent; empty when it has none."""
    tags = message.extra_tags or ""
    return tags.removeprefix(UNDO_TAG_PREFIX) if tags.startswith(UNDO_TAG_PREFIX) else ""
