"""The second factor of a person: whether there is one, must be one, and fits."""

import hashlib

from allauth.core.internal.cryptokit import normalize_user_code
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.cache import cache

from accounts.models import User

SECOND_FACTOR_TYPES = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
CODE_VALID_SECONDS = 30 * (2 * settings.MFA_TOTP_TOLERANCE + 1)  # seconds


def has_second_factor(user: AbstractBaseUser) -> bool:
    """An app or a passkey is set up."""
    return bool(
        Authenticator.objects.filter(user_id=user.pk, type__in=SECOND_FACTOR_TYPES).exists()
    )


def requires_second_factor(user: User) -> bool:
    """Staff asked this person for one, or they are staff and the platform asks staff for one."""
    return user.second_factor_required or (user.is_staff and settings.STAFF_SECOND_FACTOR)


def needs_enrolment(user: User) -> bool:
    """They must have a second factor and have none: the first one needs more than the password."""
    return requires_second_factor(user) and not has_second_factor(user)


def verify_code(user: User, code: str) -> bool:
    """The code is the app's of this minute, or an unused recovery code: either is used up now."""
    kinds = (Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES)
    rows = Authenticator.objects.filter(user_id=user.pk, type__in=kinds).order_by("-type")
    for row in rows:
        if row.wrap().validate_code(code):
            row.record_usage()
            return consume_code(user, code)
    return False


def consume_code(user: User, code: str) -> bool:
    """The code fitted, and nobody used it before; from now on somebody has.

    allauth forgets a used code after half a minute, while an app's code fits three times as long.
    """
    words = f"{user.pk} {normalize_user_code(code)}".encode()
    return bool(cache.add(f"used-code-{hashlib.sha256(words).hexdigest()}", 1, CODE_VALID_SECONDS))
