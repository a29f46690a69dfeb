"""`manage.py bootstrap`: the first account, from ACE_BOOTSTRAP_* or generated once."""

import secrets
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_email
from django.db import connection, transaction

from accounts.keys import key_format
from accounts.keys.api_keys import create_api_key
from accounts.models import ApiKey, User
from config.management.commands.migrate import lift_timeouts
from core.errors import AceError, Invalid
from core.security.scopes import KEY_SCOPES, Scope

DEFAULT_EMAIL = "admin@localhost"


class Command(BaseCommand):
    help = "Create or update the first account from ACE_BOOTSTRAP_*, or generate one."

    def handle(self, *args: Any, **options: Any) -> None:
        lift_timeouts(connection)
        try:
            made = ensure_first_login()
        except AceError as error:
            raise CommandError(error.message) from None
        if made.warning:
            self.stderr.write(made.warning)
        if made.password or made.api_key:
            self.stdout.write(f"First login, shown once: {made.email}")
        if made.password:
            self.stdout.write(f"  password  {made.password}")
        if made.api_key:
            self.stdout.write(f"  API key   {made.api_key}  (for an agent: scope report)")


@dataclass(frozen=True)
class FirstLogin:
    """The first account; `password` and `api_key` are set only if generated now."""

    email: str
    password: str = ""
    api_key: str = ""
    warning: str = ""


@transaction.atomic
def ensure_first_login() -> FirstLogin:
    """Create or update the superuser and key of the settings; without settings, only create one.

    For a new user, what the operator did not choose is generated. Raises Invalid.
    """
    chosen = settings.BOOTSTRAP_EMAIL or settings.BOOTSTRAP_PASSWORD or settings.BOOTSTRAP_API_KEY
    email = _email()
    if not chosen and User.objects.exists():
        return FirstLogin(email)
    user = User.objects.filter(email=email).first()
    if user is None:
        return _create(email)
    if settings.BOOTSTRAP_PASSWORD:
        _sync_login(user)
    elif settings.BOOTSTRAP_EMAIL and not user.is_superuser:
        # Anyone may have registered this address: only the operator's password proves it.
        raise Invalid("Set ACE_BOOTSTRAP_PASSWORD too: ACE_BOOTSTRAP_EMAIL is not staff yet.")
    return FirstLogin(email, warning=_sync_key(user))


def _email() -> str:
    """The configured address, else the oldest superuser's, else the default."""
    email: str = settings.BOOTSTRAP_EMAIL.strip().lower()
    if not email:
        first = User.objects.filter(is_superuser=True).order_by("created_at").first()
        return first.email if first else DEFAULT_EMAIL
    try:
        validate_email(email)
    except ValidationError:
        raise Invalid(f"Set ACE_BOOTSTRAP_EMAIL to an email address; it is {email!r}.") from None
    return email


def _create(email: str) -> FirstLogin:
    password = settings.BOOTSTRAP_PASSWORD or secrets.token_urlsafe(15)
    _check_password(password, email)
    user = User.objects.create_superuser(email, password)
    token = "" if settings.BOOTSTRAP_API_KEY else _create_key(user, None)
    _sync_key(user)
    return FirstLogin(email, "" if settings.BOOTSTRAP_PASSWORD else password, token)


def _sync_login(user: User) -> None:
    """Set the configured password and superuser rights."""
    if not user.check_password(settings.BOOTSTRAP_PASSWORD):
        _check_password(settings.BOOTSTRAP_PASSWORD, user.email)
        user.set_password(settings.BOOTSTRAP_PASSWORD)
    user.is_active = user.is_staff = user.is_superuser = user.email_verified = True
    user.save()


def _sync_key(user: User) -> str:
    """Create the configured key; return a warning if it exists but is no longer active."""
    token = settings.BOOTSTRAP_API_KEY
    if not token:
        return ""
    key = ApiKey.objects.filter(digest=key_format.digest(token)).first()
    if key is None:
        _create_key(user, token)
    elif key.user_id != user.pk:
        raise Invalid("Set another ACE_BOOTSTRAP_API_KEY: this one belongs to another account.")
    elif key.state != "active":
        # A revoked or rotated key stays so, and must not prevent a server from starting.
        return f"ACE_BOOTSTRAP_API_KEY is {key.state} and stays so: set another one, or unset it."
    return ""


def _create_key(user: User, token: str | None) -> str:
    try:
        # A generated key is printed for an agent; one that the operator chose is for programs too.
        scopes = [Scope.REPORT] if token is None else KEY_SCOPES
        return create_api_key(
            user=user, name="first key", scopes=scopes, token=token, notify=False
        )[1]
    except Invalid as error:
        why = error.fields["token"][0]
        raise Invalid(f"ACE_BOOTSTRAP_API_KEY is invalid. {why}") from None


def _check_password(password: str, email: str) -> None:
    try:
        validate_password(password, User(email=email))
    except ValidationError as error:
        raise Invalid(f"ACE_BOOTSTRAP_PASSWORD is invalid. {' '.join(error.messages)}") from None
