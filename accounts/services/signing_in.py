"""What the doors can do with people: registering and logging in."""

import logging

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.audit import record
from accounts.errors import Invalid, WrongCredentials
from accounts.limits import take_rate
from accounts.models import User

logger = logging.getLogger(__name__)


def register_user(*, email: str, password: str, address: str) -> None:
    """The e-mail has an account: a new one with this password, or the one it already had.

    Returns nothing, and takes the same time, so that nobody learns who has an account: let the
    person log in next. `address` is the client's, for the limit. Raises RateLimited, Invalid.
    """
    take_rate("register", address)
    email = _clean_email(email)
    _check_password(password, User(email=email))
    try:
        with transaction.atomic():
            user = User.objects.create_user(email, password)
            record(action="register_user", by=user, subject=user)
    except IntegrityError:
        logger.info("Somebody registered an address that has an account.")


def log_in(*, email: str, password: str, address: str) -> User:
    """The active user with this e-mail and password, and `last_login` set.

    `address` is the client's, for the limit. Raises RateLimited, WrongCredentials.
    """
    take_rate("log_in", address)
    user = User.objects.filter(email=email.strip().lower(), is_active=True).first()
    if user is None:
        # One hash, as for a known address, so that time does not tell them apart.
        User().set_password(password)
        raise WrongCredentials
    if not user.check_password(password):
        raise WrongCredentials
    user.last_login = timezone.now()
    with transaction.atomic():
        user.save(update_fields=["last_login"])
        record(action="log_in", by=user, subject=user)
    return user


def _clean_email(email: str) -> str:
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError:
        raise Invalid.field("email", "Enter a valid e-mail address.") from None
    if len(email) > 254:
        raise Invalid.field("email", "Enter an e-mail address of at most 254 characters.")
    return email


def _check_password(password: str, user: User) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid("Choose another password.", fields={"password": error.messages}) from None
