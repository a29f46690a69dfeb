"""Success messages of pages, with an optional undo button."""

from django.contrib import messages
from django.contrib.messages.storage.base import Message
from django.http import HttpRequest

UNDO_TAG_PREFIX = "undo:"


def add_success_message(request: HttpRequest, text: str, *, undo: str = "") -> None:
    """Show `text` on the next page; `undo` is the URL that its undo button posts to."""
    messages.success(request, text, extra_tags=f"{UNDO_TAG_PREFIX}{undo}" if undo else "")


def undo_url(message: Message) -> str:
    """The URL that undoes what the message reports; empty without one."""
    tags = message.extra_tags or ""
    return tags.removeprefix(UNDO_TAG_PREFIX) if tags.startswith(UNDO_TAG_PREFIX) else ""
