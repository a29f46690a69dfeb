"""Forms of the account pages; services validate, and their errors are shown on the fields."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django import forms
from django.conf import settings
from django.utils import timezone

from accounts.hooks import hooks
from accounts.models import User
from core.http.forms import ServiceForm
from core.security.scopes import AGENT_SCOPES, SCOPE_TEXTS

CURRENT_PASSWORD = {"autocomplete": "current-password"}
NEW_PASSWORD = {"autocomplete": "new-password"}
PASSWORD_HELP = "At least 12 characters. A few unrelated words are easy to remember."  # noqa: S105 - a help text


class LogInForm(ServiceForm):
    email = forms.EmailField(
        label="Email",
        widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    password = forms.CharField(strip=False, widget=forms.PasswordInput(attrs=CURRENT_PASSWORD))

    def prefill_email(self, email: str) -> None:
        """Fill in the e-mail and focus the password."""
        self.initial["email"] = email
        del self.fields["email"].widget.attrs["autofocus"]
        self.fields["password"].widget.attrs["autofocus"] = True


class RegisterForm(LogInForm):
    password = forms.CharField(
        strip=False, help_text=PASSWORD_HELP, widget=forms.PasswordInput(attrs=NEW_PASSWORD)
    )


MAX_PLAYBOOKS_SHOWN = 100


class ApiKeyForm(ServiceForm):
    """A new API key; `days` becomes `expires_at`. Sent again, `id` makes no second one."""

    id = forms.UUIDField(required=False, initial=uuid4, widget=forms.HiddenInput)
    name = forms.CharField(max_length=100, help_text="Where you use it, such as “laptop”.")
    scopes = forms.MultipleChoiceField(
        label="Scopes",
        choices=[(scope.value, text) for scope, text in SCOPE_TEXTS.items()],
        initial=[scope.value for scope in AGENT_SCOPES],
        widget=forms.CheckboxSelectMultiple,
    )
    playbook_ids = forms.MultipleChoiceField(
        label="Only these playbooks",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Leave empty for all your playbooks, including future ones.",
    )
    days = forms.TypedChoiceField(
        label="Expires",
        choices=lambda: [
            (days, text)
            for days, text in ((30, "in 30 days"), (90, "in 90 days"), (365, "in a year"))
            if timedelta(days=days) <= settings.API_KEY_MAX_LIFETIME
        ],
        coerce=int,
        initial=90,
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["playbook_ids"]
        assert isinstance(field, forms.MultipleChoiceField)  # noqa: S101 - narrows the type
        own = hooks.playbook_names(user, active=True, most=MAX_PLAYBOOKS_SHOWN)
        field.choices = [(str(pk), name) for pk, name in own.items()]
        if len(own) == MAX_PLAYBOOKS_SHOWN:
            field.help_text += " These changed last; REST takes the id of any other."
        if not field.choices:
            del self.fields["playbook_ids"]

    def clean(self) -> dict[str, Any]:
        data = dict(super().clean() or {})
        days = data.pop("days", None)
        if days is not None:
            data["expires_at"] = timezone.now() + timedelta(days=days)
        return data


class RotateApiKeyForm(ServiceForm):
    overlap = forms.TypedChoiceField(
        label="The old key keeps working",
        choices=[(0, "not at all"), (1, "for an hour"), (24, "for a day"), (168, "for a week")],
        coerce=lambda hours: timedelta(hours=int(hours)),
        initial=24,
    )


class EmailForm(ServiceForm):
    email = forms.EmailField(
        label="Email", widget=forms.EmailInput(attrs={"autocomplete": "email"})
    )


class NewPasswordForm(ServiceForm):
    password = forms.CharField(
        label="New password",
        strip=False,
        help_text=PASSWORD_HELP,
        widget=forms.PasswordInput(attrs=NEW_PASSWORD),
    )


class ResetPasswordForm(NewPasswordForm):
    revoke_keys = forms.BooleanField(
        label="Also revoke my API keys, disconnect apps, and remove my LLM key and webhook",
        required=False,
        initial=True,
    )


class PasswordForm(NewPasswordForm):
    current = forms.CharField(
        label="Current password", strip=False, widget=forms.PasswordInput(attrs=CURRENT_PASSWORD)
    )
    field_order = ("current", "password")


class VerifyForm(ServiceForm):
    """Confirms an e-mail address, with the password unless the user is logged in."""

    password = forms.CharField(
        label="Your password", strip=False, widget=forms.PasswordInput(attrs=CURRENT_PASSWORD)
    )

    def __init__(self, *args: Any, known: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if known:
            del self.fields["password"]


class DeleteAccountForm(ServiceForm):
    email = forms.EmailField(
        label="Type your email to confirm", widget=forms.EmailInput(attrs={"autocomplete": "off"})
    )

    def __init__(self, *args: Any, wanted: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.wanted = wanted

    def clean(self) -> dict[str, Any]:
        typed = (super().clean() or {}).get("email", "")
        if typed and typed.lower() != self.wanted:
            self.add_error("email", "This isn't your account's email.")
        return {}


class WebhookForm(ServiceForm):
    url = forms.CharField(
        label="URL",
        max_length=500,
        help_text="An https URL on the public internet. Saving it creates a new signing secret.",
        widget=forms.URLInput(attrs={"placeholder": "https://hooks.example.com/ace"}),
    )


class LlmKeyForm(ServiceForm):
    api_key = forms.CharField(
        label="API key",
        max_length=500,
        help_text="Stored encrypted. Only its last four characters will be shown.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    base_url = forms.CharField(
        label="Base URL",
        required=False,
        max_length=500,
        help_text="Any OpenAI-compatible endpoint. Leave empty for the platform's provider.",
        widget=forms.URLInput(attrs={"placeholder": "https://api.example.com/v1"}),
    )
