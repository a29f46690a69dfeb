"""The second factor of a user: whether it exists, is required, and matches a code."""

import hashlib

from allauth.core.internal.cryptokit import normalize_user_code
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.cache import cache

from accounts.models import User

SECOND_FACTOR_TYPES = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
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
