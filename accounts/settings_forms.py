"""Forms of the account settings; the rules are in services."""

from typing import Any

from django import forms

from accounts.forms import PageForm

CURRENT = {"autocomplete": "current-password"}
NEW = {"autocomplete": "new-password"}
HELP = "At least 12 characters. A few unrelated words are easy to keep."


class EmailForm(PageForm):
    email = forms.EmailField(
        label="E-mail", widget=forms.EmailInput(attrs={"autocomplete": "email"})
    )


class PasswordForm(PageForm):
    current = forms.CharField(
        label="Your password now", strip=False, widget=forms.PasswordInput(attrs=CURRENT)
    )
    password = forms.CharField(
        label="The new password", strip=False, help_text=HELP, widget=forms.PasswordInput(attrs=NEW)
    )


class NewPasswordForm(PageForm):
    password = forms.CharField(
        label="The new password", strip=False, help_text=HELP, widget=forms.PasswordInput(attrs=NEW)
    )


class VerifyForm(PageForm):
    """The button of a letter's link; a password too where nobody is logged in."""

    password = forms.CharField(
        label="Your password", strip=False, widget=forms.PasswordInput(attrs=CURRENT)
    )

    def __init__(self, *args: Any, known: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if known:
            del self.fields["password"]


class DeleteForm(PageForm):
    email = forms.EmailField(
        label="Type your e-mail to say that you mean it",
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, *args: Any, wanted: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.wanted = wanted

    def clean(self) -> dict[str, Any]:
        typed = (super().clean() or {}).get("email", "")
        if typed and typed.lower() != self.wanted:
            self.add_error("email", "This is not the e-mail of this account.")
        return {}


class LlmKeyForm(PageForm):
    api_key = forms.CharField(
        label="The key",
        max_length=500,
        help_text="Kept encrypted; after this only its last four characters are ever shown.",
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )
    base_url = forms.CharField(
        label="Base URL",
        required=False,
        max_length=500,
        help_text="Empty for the platform's own provider. Any OpenAI-compatible endpoint: https://…",
        widget=forms.URLInput(attrs={"placeholder": "https://api.example.com/v1"}),
    )
