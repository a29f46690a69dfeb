"""The second factor of a person: whether there is one, must be one, and fits."""

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser

from accounts.models import User

FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


def has_second_factor(user: AbstractBaseUser) -> bool:
    """An app or a passkey is set up."""
    return bool(Authenticator.objects.filter(user_id=user.pk, type__in=FACTORS).exists())


def must_have_second_factor(user: User) -> bool:
    """Staff asked this person for one, or they are staff and the platform asks staff for one."""
    return user.second_factor_required or (user.is_staff and settings.STAFF_SECOND_FACTOR)


def code_fits(user: User, code: str) -> bool:
    """The code is the app's of this minute, or an unused recovery code: either is used up now."""
    kinds = (Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES)
    rows = Authenticator.objects.filter(user_id=user.pk, type__in=kinds).order_by("-type")
    for row in rows:
        if row.wrap().validate_code(code):
            row.record_usage()
            return True
    return False
