"""Registration and login."""

import logging

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone

from accounts.keys.signed_tokens import SignedToken
from accounts.mfa.second_factor import has_second_factor, requires_second_factor, verify_code
from accounts.models import User
from accounts.services.login_throttling import (
    LoginSource,
    count_login_attempt,
    network_of,
    reset_login_attempts,
    throttle_codes,
)
from core.audit import record
from core.emails import send_email, send_security_notice
from core.errors import (
    INVALID_LINK,
    Forbidden,
    Invalid,
    SecondFactorRequired,
    WrongCode,
    WrongCredentials,
)
from core.ratelimit.limits import consume_rate_limit

logger = logging.getLogger(__name__)
KNOWN_NETWORK_SECONDS = 30 * 86_400
VERIFICATION = SignedToken("accounts.verify", seconds=3 * 86_400)


def register_user(*, email: str, password: str, address: str, site: str) -> None:
    """Create an account for the e-mail, unless it already has one.

    Returns nothing, takes the same time and sends one e-mail either way, so that nobody learns who
    has an account. Where verification is mandatory, an account that was never verified takes the
    new password: whoever registered it could not use it. `address` is the client's, for the rate
    limit; `site` is the base URL of links. Raises RateLimited, Invalid.
    """
    consume_rate_limit("register", address)
    email = clean_email(email)
    check_new_password(password, User(email=email))
    user = User(email=email)
    user.set_password(password)
    created = _insert(user) or _take_over(user)
    if settings.EMAIL_VERIFICATION == "none":
        return
    if created is None:
        send_email("account_exists", to=email, site=site, link=f"{site}/login/reset")
    else:
        send_verification_email(created, to=email, site=site)


def check_password(*, email: str, password: str, source: LoginSource, site: str) -> User:
    """The active user with this e-mail and password; does not log in.

    Where verification is mandatory, an unverified address gets the error of a wrong password and
    another e-mail. Raises RateLimited, WrongCredentials.
    """
    consume_rate_limit("log_in", source.device or source.address)
    email = email.strip().lower()
    count_login_attempt(account=email, source=source)
    user = User.objects.filter(email=email, is_active=True).first()
    if user is None:
        # One hash, as for a known address, so that timing does not reveal who has an account.
        User().set_password(password)
        raise WrongCredentials
    if not user.check_password(password):
        raise WrongCredentials
    if settings.EMAIL_VERIFICATION == "mandatory" and not user.email_verified:
        send_verification_email(user, to=user.email, site=site)
        raise WrongCredentials
    reset_login_attempts(account=email, source=source)
    return user


def log_in(*, email: str, password: str, code: str = "", address: str, site: str) -> User:
    """Log in with e-mail, password and second factor; sets `last_login`.

    `address` is the client's, for rate limits; the user gets an e-mail of a network without a login
    in the last 30 days, except for the very first one. Raises RateLimited, WrongCredentials,
    SecondFactorRequired (send `code`), WrongCode, Forbidden (`second_factor_setup_required`).
    """
    source = LoginSource(address)
    user = check_password(email=email, password=password, source=source, site=site)
    if has_second_factor(user):
        if not code:
            raise SecondFactorRequired
        check_code(user=user, code=code, source=source)
    elif requires_second_factor(user):
        raise Forbidden(
            "This account requires a second factor. Log in with a browser and set one up.",
            code="second_factor_setup_required",
        )
    network = f"login-{user.pk}-{network_of(address)}"
    is_new = cache.add(network, 1, KNOWN_NETWORK_SECONDS) and user.last_login is not None
    with transaction.atomic():
        if is_new:
            send_security_notice(user, f"New login from a program at {address}")
        user.last_login = timezone.now()
        user.save(update_fields=["last_login"])
        record(action="log_in", by=user, subject=user)
    return user


def check_code(*, user: User, code: str, source: LoginSource) -> None:
    """Check and consume a code of the second factor. Raises RateLimited, WrongCode."""
    with throttle_codes(user, source):
        if not verify_code(user, code.strip()):
            raise WrongCode


def send_verification_email(user: User, *, to: str, site: str) -> None:
    """E-mail a link that verifies the address `to`."""
    link = f"{site}/verify/{VERIFICATION.make(user, to)}"
    send_email("verify_email", to=to, site=site, link=link)


def read_verification_token(token: str) -> tuple[User, str]:
    """The user and the address of a link. Raises Invalid if it is old, used or forged."""
    if found := VERIFICATION.read(token):
        user, (email,) = found
        if email == user.pending_email or (email == user.email and not user.email_verified):
            return user, email
    raise Invalid(INVALID_LINK)


def clean_email(email: str) -> str:
    """The address in lower case. Raises Invalid."""
    email = email.strip().lower()
    try:
        validate_email(email)
    except ValidationError:
        raise Invalid.field("email", "Enter a valid email address.") from None
    if len(email) > 254:
        raise Invalid.field("email", "Enter an email address of at most 254 characters.")
    return email


def check_new_password(password: str, user: User) -> None:
    """Check that the password is strong enough for this user. Raises Invalid."""
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise Invalid("Choose another password.", fields={"password": error.messages}) from None


def _insert(user: User) -> User | None:
    try:
        with transaction.atomic():
            user.save(force_insert=True)
            record(action="register_user", by=user, subject=user)
    except IntegrityError:
        logger.info("Registration for an address that already has an account.")
        return None
    return user


def _take_over(user: User) -> User | None:
    """The never verified account of this address with the new password, or None."""
    if settings.EMAIL_VERIFICATION != "mandatory":
        return None
    never_used = User.objects.filter(email=user.email, email_verified=False, last_login=None)
    with transaction.atomic():
        if not never_used.filter(is_active=True).update(password=user.password):
            return None
        taken = User.objects.get(email=user.email)
        record(action="take_over_user", by=taken, subject=taken)
    return taken
