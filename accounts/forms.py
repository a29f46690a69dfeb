"""Forms of the pages; the rules are in services, their refusals come back onto the fields."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar
from uuid import uuid4

from django import forms
from django.utils import timezone

from accounts.errors import AceError, Conflict, Invalid, TooLarge
from accounts.models import User
from accounts.scopes import Scope

T = TypeVar("T")

SCOPE_LABELS = (
    (Scope.READ.value, "Read: list and read playbooks, follow evolutions"),
    (Scope.WRITE.value, "Write: report outcomes, create and change playbooks"),
    (Scope.EVOLVE.value, "Evolve: start evolutions, which may cost money"),
)


class PageForm(forms.Form):
    """A form whose valid input goes to one service."""

    refused_with = 422

    def send(self, service: Callable[..., T], **extra: Any) -> T | None:
        """What the service answers to the cleaned input; None with errors on the form.

        A service that answers None leaves `is_valid()` to tell success from refusal.
        """
        if not self.is_valid():
            return None
        try:
            return service(**self.cleaned_data, **extra)
        except (Invalid, TooLarge, Conflict) as error:
            self.refuse(error)
            return None

    def refuse(self, error: AceError) -> None:
        """Put the reasons of a refusal onto the fields they are about, else above the form."""
        self.refused_with = 422 if isinstance(error, Invalid) else error.status
        for name, lines in (error.fields or {"": [error.message]}).items():
            self.add_error(name if name in self.fields else None, lines)

    @property
    def status(self) -> int:
        """The HTTP status of the page that shows this form."""
        return self.refused_with if self.is_bound and self.errors else 200


class LogInForm(PageForm):
    email = forms.EmailField(
        label="E-mail",
        widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    password = forms.CharField(
        strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )

    def begin_with(self, email: str) -> None:
        """The address is filled in, and typing goes to the password."""
        self.initial["email"] = email
        del self.fields["email"].widget.attrs["autofocus"]
        self.fields["password"].widget.attrs["autofocus"] = True


class RegisterForm(PageForm):
    email = forms.EmailField(
        label="E-mail",
        widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    password = forms.CharField(
        strip=False,
        help_text="At least 12 characters. A few unrelated words are easy to keep.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )


class KeyForm(PageForm):
    """A new API key. `days` becomes `expires_at` when the form is sent.

    `once` names this very form: a reload of the page with the secret sends it again.
    """

    once = forms.CharField(
        required=False,
        max_length=100,
        initial=lambda: uuid4().hex,
        widget=forms.HiddenInput(attrs={"autocomplete": "off"}),
    )

    name = forms.CharField(max_length=100, help_text="Where it will be used, e.g. “laptop”.")
    scopes = forms.MultipleChoiceField(
        label="What it may do",
        choices=SCOPE_LABELS,
        initial=[Scope.READ.value, Scope.WRITE.value],
        widget=forms.CheckboxSelectMultiple,
    )
    playbook_ids = forms.MultipleChoiceField(
        label="Only these playbooks",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="None chosen means all of yours, and those you make later.",
    )
    days = forms.TypedChoiceField(
        label="Expires",
        choices=[(30, "in 30 days"), (90, "in 90 days"), (365, "in a year")],
        coerce=int,
        initial=90,
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["playbook_ids"]
        assert isinstance(field, forms.MultipleChoiceField)  # noqa: S101 - narrows the type
        own = user.playbooks.filter(status="active").order_by("name")
        field.choices = [(str(pk), name) for pk, name in own.values_list("pk", "name")]
        if not field.choices:
            del self.fields["playbook_ids"]

    def clean(self) -> dict[str, Any]:
        data = dict(super().clean() or {})
        days = data.pop("days", None)
        if days is not None:
            data["expires_at"] = timezone.now() + timedelta(days=days)
        return data


class RotateForm(PageForm):
    overlap = forms.TypedChoiceField(
        label="The old key keeps working",
        choices=[(0, "not at all"), (1, "for an hour"), (24, "for a day"), (168, "for a week")],
        coerce=lambda hours: timedelta(hours=int(hours)),
        initial=24,
    )


class NoForm(PageForm):
    """A question whose only answer is the button."""
