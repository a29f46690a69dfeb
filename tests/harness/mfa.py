"""A person with an authenticator app, for tests."""

import time

from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, generate_totp_secret, hotp_value

from accounts.models import User


def set_up_totp(user: User) -> str:
    """The user has an app and recovery codes; returns the app's secret."""
    secret: str = generate_totp_secret()
    TOTP.activate(user, secret)
    RecoveryCodes.activate(user)
    return secret


def totp_code(secret: str) -> str:
    """What the app shows now."""
    return str(format_hotp_value(hotp_value(secret, int(time.time()) // 30)))


def recovery_codes(user: User) -> list[str]:
    return list(RecoveryCodes.activate(user).get_unused_codes())
