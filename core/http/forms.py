from collections.abc import Callable
from typing import Any, TypeVar

from django import forms

from core.errors import AceError, Conflict, Invalid, TooLarge

T = TypeVar("T")


class ServiceForm(forms.Form):
    """A form whose valid input goes to one service."""

    error_status = 422

    def submit(self, service: Callable[..., T], **extra: Any) -> T | None:
        """What the service answers to the cleaned input; None with errors on the form.

        A service that answers None leaves `is_valid()` to tell success from refusal.
        """
        if not self.is_valid():
            return None
        try:
            return service(**self.cleaned_data, **extra)
        except (Invalid, TooLarge, Conflict) as error:
            self.add_service_error(error)
            return None

    def add_service_error(self, error: AceError) -> None:
        """Put the reasons of a refusal onto the fields they are about, else above the form."""
        self.error_status = 422 if isinstance(error, Invalid) else error.status
        for name, lines in (error.fields or {"": [error.message]}).items():
            self.add_error(name if name in self.fields else None, lines)

    @property
    def status(self) -> int:
        """The HTTP status of the page that shows this form."""
        return self.error_status if self.is_bound and self.errors else 200


class ConfirmForm(ServiceForm):
    """A question whose only answer is the button."""
