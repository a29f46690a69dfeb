"""Base forms of the pages: valid input goes to a service, its errors go onto the fields.

And success messages, with an optional undo button.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from django import forms
from django.contrib import messages
from django.contrib.messages.storage.base import Message
from django.http import HttpRequest

from core.errors import AceError, Conflict, Invalid, TooLarge
from core.text import find_fault

T = TypeVar("T")
UNDO_TAG_PREFIX = "undo:"


class ServiceForm(forms.Form):
    """A form whose valid input is passed to one service."""

    error_status = 422

    def _post_clean(self) -> None:
        for name, value in list(self.cleaned_data.items()):
            if isinstance(value, str) and (fault := find_fault(value)):
                self.add_error(name, fault)

    def submit(self, service: Callable[..., T], **extra: Any) -> T | None:
        """The result of the service for the cleaned input; None with errors on the form.

        For a service that returns None, `is_valid()` tells success from failure.
        """
        if not self.is_valid():
            return None
        try:
            return service(**self.cleaned_data, **extra)
        except (Invalid, TooLarge, Conflict) as error:
            self.add_service_error(error)
            return None

    def add_service_error(self, error: AceError) -> None:
        """Attach the messages to their fields, or above the form when they have none."""
        self.error_status = 422 if isinstance(error, Invalid) else error.status
        for name, lines in (error.fields or {"": [error.message]}).items():
            self.add_error(name if name in self.fields else None, lines)

    @property
    def status(self) -> int:
        """The HTTP status of the page that shows this form."""
        return self.error_status if self.is_bound and self.errors else 200


class ConfirmForm(ServiceForm):
    """A confirmation: a button and no fields."""


def add_success_message(request: HttpRequest, text: str, *, undo: str = "") -> None:
    """Show `text` on the next page; `undo` is the URL that its undo button posts to."""
    messages.success(request, text, extra_tags=f"{UNDO_TAG_PREFIX}{undo}" if undo else "")


def undo_url(message: Message) -> str:
    """The URL that undoes what the message reports; empty without one."""
    tags = message.extra_tags or ""
    return tags.removeprefix(UNDO_TAG_PREFIX) if tags.startswith(UNDO_TAG_PREFIX) else ""
