"""The second factor of a user: whether it exists, is required, and matches a code; enrolment.

Where a factor is required, the password alone does not enrol the first one: a thief of the password
could enrol their own device. The second proof is a link sent by e-mail, or printed by an operator
with `manage.py enrol_second_factor`.
"""

import hashlib

from allauth.core.internal.cryptokit import normalize_user_code
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.cache import cache

from accounts.keys.signed_tokens import SignedToken
from accounts.models import User
from core.audit import record
from core.emails import send_email
from core.errors import INVALID_LINK, Invalid
from core.ratelimit.limits import consume_rate_limit

SECOND_FACTOR_TYPES = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
ENROLMENT = SignedToken("accounts.enrol", seconds=3600)
CODE_VALID_SECONDS = 30 * (2 * settings.MFA_TOTP_TOLERANCE + 1)


def has_second_factor(user: AbstractBaseUser) -> bool:
    """True when an authenticator app or a passkey is set up."""
    return bool(
        Authenticator.objects.filter(user_id=user.pk, type__in=SECOND_FACTOR_TYPES).exists()
    )


def requires_second_factor(user: User) -> bool:
    """True if staff required it of this user, or for staff if settings require it of them."""
    return user.second_factor_required or (user.is_staff and settings.STAFF_SECOND_FACTOR)


def needs_enrolment(user: User) -> bool:
    """True when a second factor is required and none is set up."""
    return requires_second_factor(user) and not has_second_factor(user)


def verify_code(user: User, code: str) -> bool:
    """True for a current code of the app or an unused recovery code, which is consumed."""
    kinds = (Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES)
    rows = Authenticator.objects.filter(user_id=user.pk, type__in=kinds).order_by("-type")
    for row in rows:
        if row.wrap().validate_code(code):
            row.record_usage()
            return consume_code(user, code)
    return False


def consume_code(user: User, code: str) -> bool:
    """Mark a valid code as used; False if it was used before.

    allauth remembers a used code for 30 s, while a code is valid for three times as long.
    """
    words = f"{user.pk} {normalize_user_code(code)}".encode()
    return bool(cache.add(f"used-code-{hashlib.sha256(words).hexdigest()}", 1, CODE_VALID_SECONDS))


def request_enrolment(*, user: User, site: str) -> None:
    """E-mail a link to the set-up to the account's address. Raises RateLimited."""
    consume_rate_limit("send_mail", str(user.pk))
    record(action="request_enrolment", by=user, subject=user)
    link = site + enrolment_path(user)
    send_email("second_factor_enrolment", to=user.email, site=site, link=link)


def enrolment_path(user: User) -> str:
    """The path at which the logged-in user can set up the first factor within an hour."""
    return f"/settings/second-factor/first/{ENROLMENT.make(user, user.email)}"


def check_enrolment(*, user: User, token: str) -> None:
    """Check that the link is the user's, is recent, and no factor exists. Raises Invalid."""
    if ENROLMENT.read(token) != (user, [user.email]) or has_second_factor(user):
        raise Invalid(INVALID_LINK)
    record(action="confirm_enrolment", by=user, subject=user)
